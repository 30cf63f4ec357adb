import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Agent } from './agents.ts'
import { runProgram } from './run-program.ts'

const HERE = import.meta.dirname
const INSTALL_LIMIT_MS = 600_000

/** The version that package.json requires. */
export function versionAsked(packageName: string): string {
  const { optionalDependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>
  }
  return optionalDependencies[packageName] ?? 'none'
}

/**
 * The path of an agent's command; undefined where it is not installed, or in another version than required.
 */
export function commandOf({ packageName, command }: Agent): string | undefined {
  const path = join(HERE, 'node_modules/.bin', command)
  const manifest = join(HERE, 'node_modules', packageName, 'package.json')
  if (!existsSync(path) || !existsSync(manifest)) return undefined
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  return version === versionAsked(packageName) ? path : undefined
}

/**
 * Installs the agents from npm's registry if one is missing; packages that cannot be installed stay missing.
 * If npm fails, resolves to its last output.
 */
export async function installAgents(
  agents: readonly Agent[],
  stop: AbortSignal,
  tell: (text: string) => void,
): Promise<string | undefined> {
  if (agents.every((agent) => commandOf(agent) !== undefined)) return undefined
  tell('installing the agents')
  // "npm install" instead of "npm ci", because not all platform packages of the agents are published.
  // "--no-save" keeps the lock file unchanged.
  const { code, out } = await runProgram('npm', ['install', '--no-save'], {
    cwd: HERE,
    env: process.env,
    limitMs: INSTALL_LIMIT_MS,
    stop,
  })
  return code === 0 ? undefined : `npm install ended with ${code}: ${out.trim().slice(-600)}`
}
