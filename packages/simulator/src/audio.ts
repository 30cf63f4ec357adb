import { type Fields, asString } from './fields.ts'
import { Refusal } from './refusal.ts'
import { estimateTokens } from './tokens.ts'
import type { Reply } from './upstream.ts'

const MAX_CHARACTERS = 4_096
const MAX_FILE_BYTES = 25 * 1024 * 1024
const SILENT = 'A recording that this simulated model cannot read.'
const PIECE_BYTES = 24_000

/** Replies with speech that consists of tones: a WAV file, raw samples, or events with either. */
export function speechReply(body: Fields): Reply {
  const text = asString(body.input)
  if (text === '') throw new Refusal('malformed', 'input: a text is required')
  if (text.length > MAX_CHARACTERS)
    throw new Refusal('malformed', `input: at most ${MAX_CHARACTERS} characters`)
  const samples = samplesOf(text)
  const isRaw = body.response_format === 'pcm'
  const sound = isRaw ? samples : wave(samples, text)
  const tokens = estimateTokens(text.length)
  if (body.stream_format !== 'sse')
    return { kind: 'bytes', bytes: sound, contentType: isRaw ? 'audio/pcm' : 'audio/wav', tokens }
  const frames = []
  for (let at = 0; at < sound.length; at += PIECE_BYTES) {
    const audio = sound.subarray(at, at + PIECE_BYTES).toString('base64')
    frames.push({ text: event({ type: 'speech.audio.delta', audio }), tokens: 1 })
  }
  const output = Math.ceil(samples.length / 2_400)
  const usage = { input_tokens: tokens, output_tokens: output, total_tokens: tokens + output }
  frames.push({ text: event({ type: 'speech.audio.done', usage }), tokens: 0 })
  return { kind: 'stream', frames }
}

/** Replies with a transcript: the text in the comment of the file, if this program made it. */
export function transcriptReply(body: Fields, file: Buffer | undefined): Reply {
  if (!file) throw new Refusal('malformed', 'file: a recording is required')
  if (file.length > MAX_FILE_BYTES) throw new Refusal('too_large', 'file: at most 25 MB')
  const read = readWave(file)
  const seconds = read?.seconds ?? 1
  const text = read?.comment || SILENT
  const tokens = estimateTokens(text.length)
  const usage = { type: 'duration', seconds: Math.ceil(seconds) }
  if (body.stream === true || body.stream === 'true') {
    const words = text.split(/(?<=\s)/).map((delta) => ({
      text: event({ type: 'transcript.text.delta', delta }),
      tokens: 1,
    }))
    return {
      kind: 'stream',
      frames: [...words, { text: event({ type: 'transcript.text.done', text, usage }), tokens: 0 }],
    }
  }
  const plain = (type: string, content: string): Reply => ({
    kind: 'bytes',
    bytes: Buffer.from(content),
    contentType: `${type}; charset=utf-8`,
    tokens,
  })
  switch (body.response_format) {
    case 'text':
      return plain('text/plain', `${text}\n`)
    case 'srt':
      return plain('text/plain', `1\n${time(0, ',')} --> ${time(seconds, ',')}\n${text}\n\n`)
    case 'vtt':
      return plain('text/vtt', `WEBVTT\n\n${time(0, '.')} --> ${time(seconds, '.')}\n${text}\n\n`)
    case 'verbose_json':
    case 'diarized_json':
      return whole(
        { task: 'transcribe', language: 'english', duration: seconds, text, segments: [], usage },
        tokens,
      )
    default:
      return whole({ text, usage }, tokens)
  }
}

function whole(body: object, tokens: number): Reply {
  return { kind: 'whole', body, tokens }
}

function event(data: { readonly type: string } & Fields): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Formats a time for subtitles: `00:00:03,250`. */
function time(seconds: number, separator: string): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  const thousandths = String(Math.floor((seconds % 1) * 1000)).padStart(3, '0')
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}${separator}${thousandths}`
}

const RATE = 24_000
const BYTES_PER_SAMPLE = 2
const CHARACTERS_PER_SECOND = 15
const VOLUME = 8_000
/** Lowest pitch, in hertz; each letter has a different pitch. */
const LOWEST_HERTZ = 220
const HERTZ_STEP = 12

/** Samples of a text, one tone for each character: 24 kHz, 16 bits, mono. */
function samplesOf(text: string): Buffer {
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

/** Creates a WAV file with the text as its comment. */
function wave(samples: Buffer, text: string): Buffer {
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

/** Reads the duration in seconds and the comment of a WAV file; undefined for another file. */
function readWave(file: Buffer): { seconds: number; comment: string } | undefined {
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
