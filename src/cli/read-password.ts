import process from 'node:process'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/** Bytes of standard input that are read of a password, at most. */
const LONGEST = 16_384

/**
 * A password from standard input: typed twice without an echo at a terminal, else the one line that is there. Never an
 * argument, which the whole machine could read. Throws a sentence if there is none.
 */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return oneLine(await everything())
  const first = await typed('New password: ')
  if ((await typed('The same again: ')) === first) return first
  throw new Error('the two were not the same; nothing was changed')
}

async function typed(prompt: string): Promise<string> {
  process.stderr.write(prompt)
  // A terminal echoes what is typed only through this.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new Error('given up; nothing was changed')))
      lines.once('close', () => reject(new Error('no password was given; nothing was changed')))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

async function everything(): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer)
    length += (chunk as Buffer).length
    if (length > LONGEST) break
  }
  return Buffer.concat(chunks).toString()
}

function oneLine(text: string): string {
  const line = text.replace(/\r?\n$/, '')
  if (line === '') throw new Error('a password is expected on standard input; nothing came')
  if (/[\r\n]/.test(line)) throw new Error('one line is expected on standard input, with the password alone')
  return line
}
