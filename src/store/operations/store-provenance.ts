import { sql } from 'kysely'
import { NATIVE_RETENTION_MS, type Provenance } from '../../domain/stored-response.ts'
import type { Db } from './operation.ts'

/** Provenance of a settled call, with the facts of the call that its rows repeat. */
export interface ProvenCall {
  readonly user_id: number
  readonly model: string
  readonly group: string
  readonly channel: string
  readonly ended_ms: number
  readonly provenance: Provenance
}

/**
 * Stores the provenance of settled calls, in one statement for each table. On SQLite, settlements store it
 * themselves.
 */
export async function storeProvenance(
  db: Db,
  { calls }: { readonly calls: readonly ProvenCall[] },
): Promise<void> {
  const responses = byKey(calls.flatMap(responseRow), ({ id }) => id)
  if (responses.length > 0)
    await db
      .insertInto('stored_responses')
      .values(responses)
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((excluded) => ({
          channel: excluded.ref('excluded.channel'),
          key_tag: excluded.ref('excluded.key_tag'),
          upstream_id: excluded.ref('excluded.upstream_id'),
          tokens: excluded.ref('excluded.tokens'),
          created_ms: excluded.ref('excluded.created_ms'),
          expires_ms: excluded.ref('excluded.expires_ms'),
          call_id: sql<null>`null`,
          rate: sql<null>`null`,
        })),
      )
      .execute()
  const origins = byKey(calls.flatMap(originRows), ({ hash }) => hash)
  if (origins.length > 0)
    await db
      .insertInto('reasoning_origins')
      .values(origins)
      .onConflict((conflict) =>
        conflict.column('hash').doUpdateSet((excluded) => ({
          channel: excluded.ref('excluded.channel'),
          key_tag: excluded.ref('excluded.key_tag'),
          expires_ms: excluded.ref('excluded.expires_ms'),
        })),
      )
      .execute()
}

function responseRow({ provenance, ...call }: ProvenCall) {
  const { response, keyTag } = provenance
  if (!response) return []
  return [
    {
      id: response.id,
      user_id: call.user_id,
      model: call.model,
      group_name: call.group,
      channel: call.channel,
      key_tag: keyTag,
      upstream_id: response.upstreamId,
      tokens: response.tokens,
      previous_id: response.previousId,
      created_ms: call.ended_ms,
      expires_ms: call.ended_ms + NATIVE_RETENTION_MS,
    },
  ]
}

function originRows({ channel, ended_ms, provenance: { keyTag, reasoning } }: ProvenCall) {
  const expiresMs = ended_ms + NATIVE_RETENTION_MS
  return reasoning.map((hash) => ({ hash, channel, key_tag: keyTag, expires_ms: expiresMs }))
}

/**
 * Picks the last row of each key, because one statement cannot write a row twice; sorted, so that nodes
 * cannot deadlock.
 */
function byKey<Row>(rows: readonly Row[], keyOf: (row: Row) => string): Row[] {
  const latest = new Map(rows.map((row) => [keyOf(row), row]))
  return [...latest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}
