import type { CallOptions } from './client.ts'

/** Part of a form: a field, or a file with its name. */
export interface Part {
  readonly name: string
  readonly content: string | Buffer
  readonly filename?: string
  readonly type?: string
}

const BOUNDARY = '----test-boundary-7MA4YWxkTrZu0gW'

/** Renders a form; `ending` replaces its last boundary. */
export function formBytes(parts: readonly Part[], ending = `--${BOUNDARY}--\r\n`): Buffer {
  const rendered = parts.flatMap(({ name, content, filename, type }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`
    const typed = type === undefined ? '' : `Content-Type: ${type}\r\n`
    const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${typed}\r\n`
    return [Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')]
  })
  return Buffer.concat([...rendered, Buffer.from(ending)])
}

/** Options of a call whose body is a form of `formBytes`. */
export function formCall(path: string, key: string, body: Buffer): CallOptions {
  return {
    path,
    key,
    headers: {
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      'content-length': String(body.length),
    },
  }
}

/** The fields of a request for a transcript: the recording first, the model last. */
export function recordingParts(model: string, recording: Buffer, more: readonly Part[] = []): Part[] {
  return [
    { name: 'file', content: recording, filename: 'speech ü.wav', type: 'audio/wav' },
    ...more,
    { name: 'model', content: model },
  ]
}

/**
 * A WAV file of silence: 16 kHz, 16 bits, one channel. `claimed` is the number of sound bytes that its header
 * states.
 */
export function waveFile(seconds: number, claimed?: number): Buffer {
  const rate = 16_000
  const sound = Buffer.alloc(seconds * rate * 2)
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(Math.min(36 + (claimed ?? sound.length), 0xffff_ffff), 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate * 2, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(claimed ?? sound.length, 40)
  return Buffer.concat([head, sound])
}
