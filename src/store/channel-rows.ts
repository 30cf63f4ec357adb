import {
  CHANNEL,
  type ChannelDefinition,
  type ChannelRow,
  type RetiredKey,
  type StoredChannel,
} from '../domain/records/channel.ts'
import type { StoredSetting } from '../domain/settings.ts'
import type { StoredSettingRow } from './row-types.ts'
import { type Secrets, seal, hmacOf, unseal } from './secrets.ts'

/**
 * Prefix of the proxy's line in the encrypted text of a channel, which has one key per line. No key begins
 * with this prefix.
 */
const PROXY_LINE = '\tproxy\t'
/** Prefix of the line of a retired key; the time of its retirement and the key follow. */
const RETIRED_LINE = '\tretired\t'

/** Converts a row to a channel, decrypting its keys and its proxy. */
export function channelFromRow(row: ChannelRow, secrets: Secrets): StoredChannel {
  const lines = unseal(secrets, row.keys_cipher, { table: 'channels', row: row.id }).split('\n')
  const proxy = lines.find((line) => line.startsWith(PROXY_LINE))?.slice(PROXY_LINE.length)
  const { declared, ...values } = CHANNEL.fromRow(row)
  const retired = lines.filter((line) => line.startsWith(RETIRED_LINE)).map(retiredKey)
  const channel = {
    ...values,
    declared: { ...declared, ...(proxy !== undefined && { proxy }) },
    keys: lines.filter((line) => line !== '' && !line.startsWith('\t')),
    ...(retired.length > 0 && { retired }),
  }
  return { ...channel, version: channelVersion(channel, secrets) }
}

function retiredKey(line: string): RetiredKey {
  const [since = '', ...key] = line.slice(RETIRED_LINE.length).split('\t')
  return { key: key.join('\t'), since: Number(since) }
}

/** Version of a channel: an HMAC with the gateway secret, so that it reveals nothing about the keys. */
export function channelVersion(definition: ChannelDefinition, secrets: Secrets): string {
  const { name, declared, keys, retired, status, family } = definition
  const { proxy, ...open } = declared
  const content = [name, open, proxy, keys, status, family, ...(retired?.length ? [retired] : [])]
  return hmacOf(secrets, 'version', JSON.stringify(content)).slice(0, 16)
}

/**
 * Encrypts the keys of a channel for its row. The proxy is encrypted too, because its URL may contain a
 * password.
 */
export function sealChannelKeys(
  secrets: Secrets,
  { keys, retired = [], declared: { proxy } }: Pick<ChannelDefinition, 'keys' | 'retired' | 'declared'>,
  id: number,
): string {
  const lines = [
    ...keys,
    ...retired.map(({ key, since }) => `${RETIRED_LINE}${since}\t${key}`),
    ...(typeof proxy === 'string' ? [PROXY_LINE + proxy] : []),
  ]
  return seal(secrets, lines.join('\n'), { table: 'channels', row: id })
}

/** The part of a channel that is not encrypted. */
export function unencryptedDefinition({ name, declared, status, family }: ChannelDefinition) {
  const { proxy: _, ...open } = declared
  return { name, declared: open, status, family }
}

/** Sections whose values are encrypted, because their addresses and headers often contain secrets. */
export const SEALED_SECTIONS: ReadonlySet<string> = new Set(['alerts', 'guards', 'mcp_servers'])

/** Converts a row to the setting that it stores, decrypting it if necessary. */
export function storedSettingFromRow(
  { section, name, value }: StoredSettingRow,
  secrets: Secrets,
): StoredSetting {
  const text = SEALED_SECTIONS.has(section)
    ? unseal(secrets, value, { table: 'stored_settings', row: name })
    : value
  return { section: section as StoredSetting['section'], name, value: JSON.parse(text) }
}

/** JSON text of a setting for its row; encrypted in sections with secrets. */
export function storedSettingText({ section, name, value }: StoredSetting, secrets: Secrets): string {
  const text = JSON.stringify(value)
  return SEALED_SECTIONS.has(section) ? seal(secrets, text, { table: 'stored_settings', row: name }) : text
}
