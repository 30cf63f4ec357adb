import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort, statusOn } from '../../../test/fixtures/port.ts'
import { earlierCheckout } from '../../candidates/sluice.ts'
import type { Figure } from '../../measuring/figure.ts'

/** Programs to start: a server that only listens, and this gateway on an empty and on a used data folder. */
export const STARTS = ['bare server', 'sluice', 'sluice, later', 'earlier', 'earlier, later'] as const
export type Start = (typeof STARTS)[number]

const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))
const BARE = `import { createServer } from 'node:http'
createServer((_, response) => response.end('ok')).listen(process.env.PORT)
`

/** Prepared folders and files for the starts, until it is disposed of. */
export class StartUps implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  #count = 0

  constructor() {
    writeFileSync(join(this.#folder, 'bare.mjs'), BARE)
    const manifest = { name: 'bare', scripts: { start: 'exec node bare.mjs' } }
    writeFileSync(join(this.#folder, 'package.json'), JSON.stringify(manifest))
  }

  /** Milliseconds from `npm start` to the first response with 200. */
  async measure(start: Start): Promise<Figure> {
    switch (start) {
      case 'bare server':
        return { cost: await firstAnswer(this.#folder, '/', this.#folder) }
      case 'sluice':
        return { cost: await firstAnswer(REPOSITORY, '/readyz', join(this.#folder, `data-${this.#count++}`)) }
      case 'sluice, later':
        return { cost: await firstAnswer(REPOSITORY, '/readyz', join(this.#folder, 'used')) }
      case 'earlier':
        return {
          cost: await firstAnswer(
            earlierCheckout.folder,
            '/readyz',
            join(this.#folder, `data-${this.#count++}`),
          ),
        }
      case 'earlier, later':
        return {
          cost: await firstAnswer(earlierCheckout.folder, '/readyz', join(this.#folder, 'used-earlier')),
        }
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

async function firstAnswer(folder: string, path: string, dataDir: string): Promise<number> {
  const port = await freePort()
  const started = performance.now()
  const child = spawn('npm', ['start'], {
    cwd: folder,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  try {
    while ((await statusOn(port, path)) !== 200) {
      if (child.exitCode !== null) throw new Error(`npm start in ${folder} ended with ${child.exitCode}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return performance.now() - started
  } finally {
    end(child)
    await ended
  }
}

// Signals the whole process group: npm, and its children.
function end(child: ChildProcess): void {
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  } catch {
    // The process has ended by itself.
  }
}
