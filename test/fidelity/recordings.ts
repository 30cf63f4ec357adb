import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DIALECTS, type Dialect } from './facts.ts'

/** A response that a provider gave. */
export interface Recording {
  readonly name: string
  readonly dialect: Dialect
  readonly streamed: boolean
  readonly text: string
}

/** Recordings that are not responses of a dialect, by what they are. */
const OTHERS = [
  /^error-|\.request\.json$/,
  // Other endpoints of Google's API.
  /cachedcontent|count-tokens|usage-limit|embedding|task-prefix|edge-agent|list-models|google-upload/,
  // A chat completion, the response to a deletion, and a list of items.
  /^azure--azure-deepseek-reasoning-1\.json$|responses-delete\.json$|responses-input-items\.json$/,
  // Edited by hand, so that its deltas differ from its items.
  /openai-shell-container-1\.sse$/,
]

/** All recorded responses in the folder that RECORDINGS names; none where it is not set. */
export function recordedAnswers(): Recording[] {
  const folder = process.env['RECORDINGS']
  if (folder === undefined) return []
  return DIALECTS.flatMap((dialect) =>
    readdirSync(join(folder, dialect))
      .filter((name) => /\.(?:json|sse)$/.test(name) && !OTHERS.some((other) => other.test(name)))
      .map((name) => ({
        name,
        dialect,
        streamed: name.endsWith('.sse'),
        text: readFileSync(join(folder, dialect, name), 'utf8'),
      })),
  )
}
