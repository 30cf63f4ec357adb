import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Shell } from './shell.ts'

/** Bytes of standard input that are read of a password, at most. */
const MAX_BYTES = 16_384

/**
 * A password from the shell's input: typed twice without an echo at a terminal, else the one line that is
 * there. Never an argument, which the whole machine could read. Throws a sentence if there is none.
 */
export async function readPassword(shell: Shell): Promise<string> {
  if (!shell.input.isTTY) return oneLine(await everything(shell))
  const first = await typed(shell, 'New password: ')
  if ((await typed(shell, 'The same again: ')) === first) return first
  throw new Error('the two were not the same; nothing was changed')
}

async function typed({ input, err }: Shell, prompt: string): Promise<string> {
  err.write(prompt)
  // A terminal echoes what is typed only through this.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: silent, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new Error('given up; nothing was changed')))
      lines.once('close', () => reject(new Error('no password was given; nothing was changed')))
    })
  } finally {
    lines.close()
    err.write('\n')
  }
}

async function everything({ input }: Shell): Promise<string> {
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
  if (line === '') throw new Error('a password is expected on standard input; nothing came')
  if (/[\r\n]/.test(line)) throw new Error('one line is expected on standard input, with the password alone')
  return line
}
