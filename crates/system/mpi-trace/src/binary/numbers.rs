// SPDX-License-Identifier: Apache-2.0
//! Reader of encoded numbers in trace records.

use crate::error::Damage;

/// Upper limit of message sizes; larger ones are damage.
const MAX_BYTES: u64 = 1 << 62;

/// Reads the fields of records.
pub struct Numbers<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> Numbers<'a> {
    pub fn new(bytes: &'a [u8]) -> Numbers<'a> {
        Numbers { bytes, place: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.place == self.bytes.len()
    }

    /// Returns a damage error at the current offset, which excludes block headers.
    pub fn damage(&self, what: String) -> Damage {
        Damage::at_record_byte(self.place as u64, what)
    }

    fn short(&self) -> Damage {
        self.damage("a record is cut off within a block".into())
    }

    pub fn byte(&mut self) -> Result<u8, Damage> {
        let byte = *self.bytes.get(self.place).ok_or_else(|| self.short())?;
        self.place += 1;
        Ok(byte)
    }

    pub fn number(&mut self) -> Result<u64, Damage> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damage("a number of more than 64 bits".into()))
    }

    pub fn rank(&mut self) -> Result<u32, Damage> {
        let number = self.number()?;
        match u32::try_from(number) {
            Ok(rank) if rank <= goal::MAX_RANKS => Ok(rank),
            _ => Err(self.damage(format!("rank {number}"))),
        }
    }

    /// Reads the size of a message.
    pub fn bytes(&mut self) -> Result<u64, Damage> {
        let bytes = self.number()?;
        self.size(bytes)
    }

    /// Checks a message size that was read as a number.
    pub fn size(&self, bytes: u64) -> Result<u64, Damage> {
        if bytes <= MAX_BYTES { Ok(bytes) } else { Err(self.damage(format!("a message of {bytes} bytes"))) }
    }

    /// Reads the number of items that follow, each of at least `least` bytes.
    pub fn count(&mut self, least: usize) -> Result<usize, Damage> {
        let count = self.number()?;
        let most = (self.bytes.len() - self.place) / least;
        usize::try_from(count).ok().filter(|&count| count <= most).ok_or_else(|| self.short())
    }

    pub fn text(&mut self) -> Result<String, Damage> {
        let length = self.count(1)?;
        let text = String::from_utf8_lossy(&self.bytes[self.place..self.place + length]).into_owned();
        self.place += length;
        Ok(text)
    }

    /// Reads ranks, encoded as runs.
    pub fn group(&mut self, ranks: u32) -> Result<Vec<u32>, Damage> {
        let runs = self.count(3)?;
        let mut group = Vec::new();
        for _ in 0..runs {
            let (first, length, stride) = (self.number()? as i64, self.number()?, self.number()?);
            let stride = (stride >> 1) as i64 ^ -((stride & 1) as i64);
            if length > u64::from(ranks) || group.len() as u64 + length > u64::from(ranks) {
                return Err(self.damage(format!("a communicator of more than {ranks} ranks")));
            }
            for index in 0..length as i64 {
                let rank = stride.checked_mul(index).and_then(|steps| first.checked_add(steps));
                match rank.and_then(|rank| u32::try_from(rank).ok()).filter(|&rank| rank < ranks) {
                    Some(rank) => group.push(rank),
                    None => return Err(self.damage("a communicator with processes of another MPI_COMM_WORLD".into())),
                }
            }
        }
        Ok(group)
    }
}
