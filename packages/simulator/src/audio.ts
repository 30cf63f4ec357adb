import { type Fields, asString } from './fields.ts'
import { Refusal } from './refusal.ts'
import { tokensOf } from './tokens.ts'
import type { Reply } from './upstream.ts'
import { readWave, samplesOf, wave } from './wave.ts'

const MAX_CHARACTERS = 4_096
const MAX_FILE_BYTES = 25 * 1024 * 1024
const SILENT = 'A recording that this simulated model cannot read.'
const PIECE_BYTES = 24_000

/** Speaks a text: a WAV file, raw samples, or events with either. */
export function speechReply(body: Fields): Reply {
  const text = asString(body.input)
  if (text === '') throw new Refusal('malformed', 'input: a text is required')
  if (text.length > MAX_CHARACTERS)
    throw new Refusal('malformed', `input: at most ${MAX_CHARACTERS} characters`)
  const samples = samplesOf(text)
  const isRaw = body.response_format === 'pcm'
  const sound = isRaw ? samples : wave(samples, text)
  const tokens = tokensOf(text.length)
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

/** Transcribes a recording: the text in its comment, if it is a WAV file of this program. */
export function transcriptReply(body: Fields, file: Buffer | undefined): Reply {
  if (!file) throw new Refusal('malformed', 'file: a recording is required')
  if (file.length > MAX_FILE_BYTES) throw new Refusal('too_large', 'file: at most 25 MB')
  const read = readWave(file)
  const seconds = read?.seconds ?? 1
  const text = read?.comment || SILENT
  const tokens = tokensOf(text.length)
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

/** Time of a subtitle: `00:00:03,250`. */
function time(seconds: number, separator: string): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  const thousandths = String(Math.floor((seconds % 1) * 1000)).padStart(3, '0')
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}${separator}${thousandths}`
}
