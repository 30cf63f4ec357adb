import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent } from './agents.ts'
import { runProgram } from './run-program.ts'

const HERE = import.meta.dirname
const INSTALL_LIMIT_MS = 600_000

/** The path of an agent's command; undefined where it is not installed, or in another version than is asked for. */
export function commandOf({ packageName, command }: Agent): string | undefined {
  const asked: unknown = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')).optionalDependencies[
    packageName
  ]
  const path = join(HERE, 'node_modules/.bin', command)
  const manifest = join(HERE, 'node_modules', packageName, 'package.json')
  if (!existsSync(path) || !existsSync(manifest)) return undefined
  return JSON.parse(readFileSync(manifest, 'utf8')).version === asked ? path : undefined
}

/** Installs the agents if one is missing; what cannot be had stays missing. */
export async function installAgents(agents: readonly Agent[], stop: AbortSignal): Promise<void> {
  if (agents.every((agent) => commandOf(agent) !== undefined)) return
  console.log('installing the agents')
  // Not "npm ci": not every agent's platform packages are all published. "--no-save" leaves the lock file as it is.
  const { code, out } = await runProgram('npm', ['install', '--no-save'], {
    cwd: HERE,
    env: process.env,
    limitMs: INSTALL_LIMIT_MS,
    stop,
  })
  if (code !== 0) console.log(`npm install ended with ${code}:\n${out.slice(-2000)}`)
}
