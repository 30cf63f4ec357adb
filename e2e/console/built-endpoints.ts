import { existsSync } from 'node:fs'
import { join } from 'node:path'

const API = join(import.meta.dirname, '../../src/api')

/** Endpoints without which a page of the console is left out, by their files. */
const FILES = {
  audit: 'audit/audit-log.ts',
  drafts: 'channels/test-draft.ts',
  health: 'channels/channel-health.ts',
  live: 'usage/usage-stream.ts',
  playground: 'relay/playground.ts',
  series: 'usage/usage-series.ts',
} as const

/** Whether this gateway lacks one of those endpoints. */
export function lacks(...names: readonly (keyof typeof FILES)[]): boolean {
  return names.some((name) => !existsSync(join(API, FILES[name])))
}
