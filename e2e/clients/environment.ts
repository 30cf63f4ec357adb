import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { runProgram } from '../agents/run-program.ts'

const HERE = import.meta.dirname
const FOLDER = join(HERE, '.venv')
const REQUIREMENTS = join(HERE, 'requirements.txt')
/** A file with the hash of the installed requirements; absent while an installation is incomplete. */
const MARK = join(FOLDER, 'installed')
const INSTALL_LIMIT_MS = 600_000

/** A Python with the clients, or the reason why there is none. */
export type Python = { readonly command: string } | { readonly missing: string }

/**
 * Creates the virtual environment where it is missing or has other versions. Changes nothing outside of it.
 */
export async function pythonWithClients(stop: AbortSignal): Promise<Python> {
  const wanted = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex')
  const command = join(FOLDER, 'bin', 'python')
  if (existsSync(MARK) && readFileSync(MARK, 'utf8') === wanted) return { command }
  rmSync(FOLDER, { recursive: true, force: true })
  const made = await run('python3', ['-m', 'venv', FOLDER], stop)
  if (made.code !== 0) return { missing: `python3 with its venv module is missing: ${lastLine(made.out)}` }
  console.error('installing the clients')
  const installed = await run(
    command,
    ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', REQUIREMENTS],
    stop,
  )
  if (installed.code !== 0) return { missing: `the clients cannot be installed: ${lastLine(installed.out)}` }
  writeFileSync(MARK, wanted)
  return { command }
}

function run(command: string, args: readonly string[], stop: AbortSignal) {
  return runProgram(command, args, { cwd: HERE, env: process.env, limitMs: INSTALL_LIMIT_MS, stop })
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
