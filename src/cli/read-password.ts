import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Shell } from './shell.ts'

/** Maximum bytes that are read from standard input. */
const MAX_BYTES = 16_384

/**
 * Reads a password: typed twice without echo at a terminal, else one line of standard input. It is never an
 * argument, which other users of the machine could see. Throws an error with a readable message.
 */
export async function readPassword(shell: Shell): Promise<string> {
  if (!shell.input.isTTY) return oneLine(await readAll(shell))
  const first = await prompted(shell, 'New password: ')
  if ((await prompted(shell, 'Repeat it: ')) === first) return first
  throw new Error('the two passwords differ; nothing was changed')
}

async function prompted({ input, err }: Shell, prompt: string): Promise<string> {
  err.write(prompt)
  // The terminal's echo goes to this stream.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: silent, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new Error('cancelled; nothing was changed')))
      lines.once('close', () => reject(new Error('no password was given; nothing was changed')))
    })
  } finally {
    lines.close()
    err.write('\n')
  }
}

async function readAll({ input }: Shell): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of input) {
    chunks.push(chunk as Buffer)
    length += (chunk as Buffer).length
    if (length > MAX_BYTES) break
  }
  return Buffer.concat(chunks).toString()
}

function oneLine(text: string): string {
  const line = text.replace(/\r?\n$/, '')
  if (line === '') throw new Error('expected a password on standard input; it is empty')
  if (/[\r\n]/.test(line)) throw new Error('expected one line on standard input, with the password alone')
  return line
}
