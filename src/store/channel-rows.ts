import type { StoredChannel, StoredEntry } from '../domain/stored-configuration.ts'
import type { ChannelRow, StoredSettingRow } from './schema.ts'
import { type Secrets, seal, unseal } from './secrets.ts'

/** Converts a stored channel, decrypting its keys. */
export function channelFromRow(row: ChannelRow, secrets: Secrets): StoredChannel {
  const keys = unseal(secrets, row.keys_cipher, { table: 'channels', row: row.id })
  return {
    id: row.id,
    name: row.name,
    declared: JSON.parse(row.declared),
    keys: keys === '' ? [] : keys.split('\n'),
    status: row.status === 1 ? 1 : 2,
    family: JSON.parse(row.family),
    createdTime: row.created_time,
    testTime: row.test_time,
    responseMs: row.response_ms,
  }
}

/** Encrypts the keys of a channel for its row. */
export function sealedKeys(secrets: Secrets, keys: readonly string[], id: number): string {
  return seal(secrets, keys.join('\n'), { table: 'channels', row: id })
}

/** Converts a stored setting. */
export function entryFromRow({ section, name, value }: StoredSettingRow): StoredEntry {
  return { section: section as StoredEntry['section'], name, value: JSON.parse(value) }
}
