import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { NATIVE_RETENTION_MS, type Provenance } from '../../domain/stored-response.ts'
import type { SettledCall } from '../../domain/records/usage.ts'

/** Rows of responses and reasoning, written with the settlements of their calls by prepared statements. */
export class ProvenanceRows {
  readonly #response: StatementSync
  readonly #reasoning: StatementSync

  constructor(db: DatabaseSync) {
    // The row of a background call's response exists already, and its call is now settled.
    this.#response = db.prepare(
      `INSERT INTO stored_responses (id, user_id, model, group_name, channel, key_tag, upstream_id, tokens, previous_id,
         created_ms, expires_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET channel = excluded.channel, key_tag = excluded.key_tag,
         upstream_id = excluded.upstream_id, tokens = excluded.tokens, created_ms = excluded.created_ms,
         expires_ms = excluded.expires_ms, call_id = NULL, rate = NULL`,
    )
    this.#reasoning = db.prepare(
      `INSERT INTO reasoning_origins (hash, channel, key_tag, expires_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (hash) DO UPDATE SET channel = excluded.channel, key_tag = excluded.key_tag,
         expires_ms = excluded.expires_ms`,
    )
  }

  /**
   * Inserts what a settled call left behind; uses `get`, which creates no object for the number of changes.
   */
  insert(call: SettledCall, { keyTag, response, reasoning }: Provenance): void {
    const expiresMs = call.ended_ms + NATIVE_RETENTION_MS
    if (response) {
      const { id, upstreamId, tokens, previousId } = response
      const { user_id, model, group, channel, ended_ms } = call
      this.#response.get(
        id,
        user_id,
        model,
        group,
        channel,
        keyTag,
        upstreamId,
        tokens,
        previousId,
        ended_ms,
        expiresMs,
      )
    }
    for (const hash of reasoning) this.#reasoning.get(hash, call.channel, keyTag, expiresMs)
  }
}
