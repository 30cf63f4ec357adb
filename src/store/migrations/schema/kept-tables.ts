import type { Table } from './table.ts'

/** Stored responses, and what is kept for later calls. */
export const KEPT_TABLES: readonly Table[] = [
  {
    name: 'stored_responses',
    columns: {
      id: 'sorted primary key',
      user_id: 'integer',
      model: 'text',
      group_name: 'text',
      channel: 'text',
      key_tag: 'text',
      upstream_id: 'text',
      tokens: 'integer',
      previous_id: 'text?',
      created_ms: 'integer',
      expires_ms: 'integer',
      content_cipher: 'text?',
      call_id: 'text?',
      rate: 'text?',
      outcome: 'text?',
      kept_bytes: 'integer?',
      streamed: 'text?',
      price_incomplete: 'integer default 0',
    },
    indexes: {
      stored_responses_by_call: '(call_id) where call_id is not null',
      // Without native responses, of which it would be a fifth of the cost: their ids sort by time.
      stored_responses_by_end: '(expires_ms) where content_cipher is not null or call_id is not null',
      stored_responses_by_age: '(user_id, created_ms) where content_cipher is not null',
    },
  },
  {
    name: 'response_parts',
    columns: { response_id: 'text', part: 'integer', created_ms: 'integer', content_cipher: 'text' },
    key: ['response_id', 'part'],
    rows: 'plain',
    // First parts stand for their responses in the search for those without a row.
    indexes: { response_parts_first: '(created_ms, response_id) where part = 0' },
  },
  {
    name: 'reasoning_origins',
    columns: { hash: 'text primary key', channel: 'text', key_tag: 'text', expires_ms: 'integer' },
    indexes: { reasoning_origins_by_end: '(expires_ms)' },
  },
  {
    name: 'kept_signatures',
    columns: {
      user_id: 'integer',
      hash: 'text',
      content_cipher: 'text',
      expires_ms: 'integer',
      kept_ms: 'integer default 0',
    },
    key: ['user_id', 'hash'],
    rows: 'plain',
    indexes: { kept_signatures_by_end: '(expires_ms)', kept_signatures_by_age: '(user_id, kept_ms)' },
  },
  {
    name: 'kept_sums',
    columns: { user_id: 'integer primary key', bytes: 'integer' },
  },
]
