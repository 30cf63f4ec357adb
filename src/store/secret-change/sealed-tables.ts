import { KEY_FORMS } from '../../domain/records/token.ts'
import { type SealContext, hashKey, type SecretKeys } from '../secrets.ts'
import { SEALED_SECTIONS } from '../channel-rows.ts'
import { keptContext, keptPartContext } from '../operations/kept.ts'

/** A row as it is read: its key, the encrypted value, and what else belongs to its context. */
export type SealedRow = Readonly<Record<string, string | number>>

/** A column with encrypted values: `docs/security.md: Change the secret` lists them. */
export interface SealedTable {
  readonly table: string
  /** Columns of the primary key, by which rows are read in order. */
  readonly key: readonly string[]
  readonly column: string
  /** Further columns that `context` needs. */
  readonly needs?: readonly string[]
  /** The rows that are encrypted, if not all are: the values of a column. */
  readonly only?: { readonly column: string; readonly values: readonly string[] }
  /** Rows that are read and written at a time: fewer, the larger they are. */
  readonly batch: number
  readonly context: (row: SealedRow) => SealContext
  /** Other columns that depend on the decrypted value and the secret. */
  readonly derived?: (plain: string, secrets: SecretKeys) => Readonly<Record<string, string>>
}

const byId = (table: string) => (row: SealedRow) => ({ table, row: row['id'] ?? '' })

/** All columns whose values are encrypted with the gateway secret. A test compares them with the schema. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    table: 'tokens',
    key: ['id'],
    column: 'key_cipher',
    // Of other keys only a digest is known, which does not depend on the secret.
    only: { column: 'key_form', values: KEY_FORMS.filter((form) => form !== 'digest') },
    batch: 200,
    context: byId('tokens'),
    derived: (key, secrets) => ({ key_hash: hashKey(secrets, key) }),
  },
  { table: 'channels', key: ['id'], column: 'keys_cipher', batch: 100, context: byId('channels') },
  {
    table: 'stored_settings',
    key: ['section', 'name'],
    column: 'value',
    only: { column: 'section', values: [...SEALED_SECTIONS] },
    batch: 50,
    context: ({ name = '' }) => ({ table: 'stored_settings', row: name }),
  },
  {
    table: 'sessions',
    key: ['id_hash'],
    column: 'logout_cipher',
    batch: 200,
    context: ({ id_hash: row = '' }) => ({ table: 'sessions', row }),
  },
  {
    table: 'kept',
    key: ['kind', 'key'],
    column: 'cipher',
    needs: ['user_id', 'content_id', 'parts', 'bytes'],
    batch: 20,
    context: (row) =>
      keptContext({
        kind: String(row['kind']),
        key: String(row['key']),
        userId: Number(row['user_id']),
        contentId: String(row['content_id']),
        parts: Number(row['parts']),
        bytes: Number(row['bytes']),
      }),
  },
  {
    table: 'kept_parts',
    key: ['content_id', 'part'],
    column: 'cipher',
    needs: ['kind'],
    batch: 4,
    context: (row) =>
      keptPartContext({
        kind: String(row['kind']),
        contentId: String(row['content_id']),
        part: Number(row['part']),
      }),
  },
]

const dataKeys = (table: string): SealedTable => ({
  table,
  key: ['id'],
  column: 'cipher',
  batch: 200,
  context: ({ id: row = '' }) => ({ table: 'content', row }),
})

/** The keys of the content log in PostgreSQL, and in its own file. What they encrypt stays as it is. */
export const SHARED_DATA_KEYS: SealedTable = dataKeys('content_keys')
export const DATA_KEYS_OF_FILE: SealedTable = dataKeys('data_keys')
