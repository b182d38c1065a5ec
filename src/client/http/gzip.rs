use std::io::{self, BufRead, Read};

use bytes::{Buf as _, Bytes};
use flate2::bufread::MultiGzDecoder;
use futures::stream::{self, StreamExt as _};

use crate::api::ApiError;
use crate::client::BodyStream;

/// Decoded bytes are passed on in pieces no larger.
const SLICE: usize = 64 << 10;
/// So many decoded bytes are never suspicious.
const UNSUSPICIOUS: u64 = 1 << 20;
/// Beyond them, one byte may not become more than so many.
const LARGEST_RATIO: u64 = 200;

/// Decodes a body of any number of gzip members, in bounded memory.
pub(super) fn decoded(body: BodyStream) -> BodyStream {
    let state = Some(Decoder {
        body,
        gzip: MultiGzDecoder::new(Feed::default()),
        received: 0,
        produced: 0,
    });
    stream::unfold(state, |state| async move {
        let mut decoder = state?;
        match decoder.next().await? {
            Ok(bytes) => Some((Ok(bytes), Some(decoder))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed_local()
}

struct Decoder {
    body: BodyStream,
    gzip: MultiGzDecoder<Feed>,
    received: u64,
    produced: u64,
}

/// What arrived and was not decoded yet. Blocks when there is nothing, until told that nothing will come.
#[derive(Default)]
struct Feed {
    chunk: Bytes,
    ended: bool,
}

impl Decoder {
    async fn next(&mut self) -> Option<Result<Bytes, ApiError>> {
        let mut slice = vec![0; SLICE];
        loop {
            match self.gzip.read(&mut slice) {
                Ok(0) => return None,
                Ok(length) => {
                    slice.truncate(length);
                    return Some(self.within_ratio(length).map(|()| slice.into()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Some(Err(ApiError::connection("the compressed answer was cut short")));
                }
                Err(error) => {
                    let problem = format!("the answer is not valid gzip: {error}");
                    return Some(Err(ApiError::malformed(problem)));
                }
            }
            match self.body.next().await {
                Some(Ok(chunk)) => {
                    self.received += chunk.len() as u64;
                    self.gzip.get_mut().chunk = chunk;
                }
                Some(Err(error)) => return Some(Err(error)),
                // Not a single byte is no gzip either, but is how an answer cut short looks here.
                None => self.gzip.get_mut().ended = true,
            }
        }
    }

    fn within_ratio(&mut self, length: usize) -> Result<(), ApiError> {
        self.produced += length as u64;
        let consumed = self.received - self.gzip.get_ref().chunk.len() as u64;
        if self.produced <= UNSUSPICIOUS || self.produced <= consumed * LARGEST_RATIO {
            return Ok(());
        }
        Err(ApiError::malformed(format!(
            "the answer is compressed more than {LARGEST_RATIO}:1, which no list is"
        )))
    }
}

impl Read for Feed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.len().min(into.len());
        self.chunk.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

impl BufRead for Feed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.chunk.is_empty() && !self.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, amount: usize) {
        self.chunk.advance(amount);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes `body`, which arrives in pieces of `size` bytes.
    async fn decode(body: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let chunks: Vec<_> =
            body.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let mut read = Vec::new();
        let mut pieces = decoded(stream::iter(chunks).boxed_local());
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| format!("{error} {error:?}"))?;
            assert!(piece.len() <= SLICE);
            read.extend_from_slice(&piece);
        }
        Ok(read)
    }

    #[tokio::test]
    async fn members_in_any_pieces_are_one_text() {
        let body = [member(b"one "), member(b""), member(b"two")].concat();
        for size in 1..body.len() {
            assert_eq!(decode(&body, size).await.unwrap(), b"one two", "{size}");
        }
    }

    #[tokio::test]
    async fn a_body_cut_anywhere_is_an_error() {
        let body = member(b"some text, and some more of it");
        for end in 0..body.len() {
            let error = decode(&body[..end], 7).await.unwrap_err();
            assert!(error.contains("cut short"), "{end}: {error}");
        }
    }

    #[tokio::test]
    async fn what_is_not_gzip_is_an_error() {
        for garbage in
            [b"{\"kind\":\"PodList\"}".to_vec(), [member(b"x"), b"tail of it".to_vec()].concat()]
        {
            assert!(decode(&garbage, 5).await.unwrap_err().contains("not valid gzip"));
        }
        let mut flipped = member(b"some text");
        let checksum = flipped.len() - 6;
        flipped[checksum] ^= 1;
        assert!(decode(&flipped, 100).await.unwrap_err().contains("not valid gzip"));
    }

    #[tokio::test]
    async fn a_bomb_is_an_error_before_it_is_large() {
        let bomb = member(&vec![0; 64 << 20]);
        assert!(decode(&bomb, 4096).await.unwrap_err().contains("more than 200:1"));
        let small = member(&vec![0; 1 << 20]);
        assert_eq!(decode(&small, 4096).await.unwrap().len(), 1 << 20);
    }
}
