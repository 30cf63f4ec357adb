const RATE = 24_000
const BYTES_PER_SAMPLE = 2
const CHARACTERS_PER_SECOND = 15
const VOLUME = 8_000
/** Lowest pitch; each letter has a different one. */
const LOWEST_HERTZ = 220
const HERTZ_STEP = 12

/** Sound samples of a text, one tone for each character: 24 kHz, 16 bits, one channel. */
export function samplesOf(text: string): Buffer {
  const perCharacter = RATE / CHARACTERS_PER_SECOND
  const characters = Array.from(text)
  const samples = Buffer.alloc(Math.round(characters.length * perCharacter) * BYTES_PER_SAMPLE)
  for (let at = 0; at < samples.length / BYTES_PER_SAMPLE; at++) {
    const code = characters[Math.floor(at / perCharacter)]?.codePointAt(0) ?? 0
    const hertz = LOWEST_HERTZ + (code % 64) * HERTZ_STEP
    const value = code === 0x20 ? 0 : Math.sin((2 * Math.PI * hertz * at) / RATE) * VOLUME
    samples.writeInt16LE(Math.round(value), at * BYTES_PER_SAMPLE)
  }
  return samples
}

/** A WAV file of samples, with the text as its comment. */
export function wave(samples: Buffer, text: string): Buffer {
  const format = Buffer.alloc(16)
  format.writeUInt16LE(1, 0)
  format.writeUInt16LE(1, 2)
  format.writeUInt32LE(RATE, 4)
  format.writeUInt32LE(RATE * BYTES_PER_SAMPLE, 8)
  format.writeUInt16LE(BYTES_PER_SAMPLE, 12)
  format.writeUInt16LE(8 * BYTES_PER_SAMPLE, 14)
  const comment = Buffer.concat([Buffer.from('INFO'), chunk('ICMT', Buffer.from(`${text}\0`))])
  const body = [chunk('fmt ', format), chunk('LIST', comment), chunk('data', samples)]
  return chunk('RIFF', Buffer.concat([Buffer.from('WAVE'), ...body]))
}

/** Seconds and comment of a WAV file; undefined for another file. */
export function readWave(file: Buffer): { seconds: number; comment: string } | undefined {
  if (file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') return undefined
  let bytesPerSecond = RATE * BYTES_PER_SAMPLE
  let seconds = 0
  let comment = ''
  for (let at = 12; at + 8 <= file.length; ) {
    const type = file.toString('latin1', at, at + 4)
    const start = at + 8
    const size = Math.min(file.readUInt32LE(at + 4), file.length - start)
    if (type === 'fmt ' && size >= 16) bytesPerSecond = Math.max(1, file.readUInt32LE(start + 8))
    if (type === 'data') seconds = size / bytesPerSecond
    if (type === 'LIST' && file.toString('latin1', start + 4, start + 8) === 'ICMT')
      comment = file.toString('utf8', start + 12, start + size).replace(/\0[^]*$/, '')
    at = start + size + (size % 2)
  }
  return { seconds, comment }
}

function chunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.write(type, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat(data.length % 2 === 0 ? [head, data] : [head, data, Buffer.alloc(1)])
}
