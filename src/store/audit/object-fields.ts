import { type Fields, type ObjectKind, Secret } from '../../domain/audit.ts'
import { CHANNEL_SETTINGS, type ChannelDefinition } from '../../domain/records/channel.ts'
import { OPTIONS } from '../../domain/options.ts'
import { asObject, type Json, type JsonObject } from '../../domain/json.ts'
import type { Stored } from '../../domain/records/field-types.ts'
import { holdsSecret, isSecretSetting } from '../../domain/secret-settings.ts'
import type { StoredSetting, StoredSection } from '../../domain/settings.ts'
import type { Field, RecordColumns } from '../../domain/records/record.ts'
import { TOKEN, type TokenRow } from '../../domain/records/token.ts'
import { isSetByOperator, parseOperatorLimits } from '../../domain/usage-limits.ts'
import { USER, type UserRow } from '../../domain/records/user.ts'
import { type Secrets, hmacOf } from '../secrets.ts'

/** Kind under which the audit log records the objects of each section of settings. */
export const OBJECT_KIND_OF_SECTION: Readonly<Record<StoredSection, ObjectKind>> = {
  options: 'option',
  groups: 'group',
  models: 'model',
  ratios: 'price',
  drains: 'channel',
  alerts: 'alert',
  guards: 'guard',
  mcp_servers: 'mcp_server',
  mcp_toolsets: 'mcp_toolset',
  mcp_tools: 'mcp_tool',
  mcp_state: 'mcp_toolset',
}

/** The fields of a user that can be changed, by their names in the API. */
export function userFields(row: UserRow): Fields {
  return auditFields(USER, row)
}

/** The fields of a token that can be changed, by their names in the API. */
export function tokenFields(row: TokenRow): Fields {
  return {
    ...auditFields(TOKEN, row),
    limits_by: isSetByOperator({ operator_terms: parseOperatorLimits(row.operator_terms) }) ? 'operator' : '',
  }
}

/** The fields of a channel, by their names in gateway.yaml. Secret values are replaced by keyed hashes. */
export function channelFields(
  { name, declared, keys, retired = [], status, family }: ChannelDefinition,
  secrets: Secrets,
): Fields {
  const settings: Readonly<Record<string, Field>> = CHANNEL_SETTINGS.fields
  const shown = (field: string, value: Json): Json | Secret => {
    const { audit, secret = !audit } = settings[field] ?? {}
    const isOpen = isEmptyJson(value) || (field === 'base_url' && isPlainAddress(value))
    return secret && !isOpen ? secretValue(value, secrets) : value
  }
  const fields = Object.entries(declared).map(([field, value]) => [field, shown(field, value)])
  return {
    name,
    status,
    ...Object.fromEntries(fields),
    keys: keys.length > 0 ? shown('keys', keys) : null,
    retired_keys: retired.length > 0 ? retired.length : null,
    other_fields: isEmptyJson(family) ? null : secretValue(family, secrets),
  }
}

/**
 * Name of a setting in the audit log. For a receiver of alerts it also contains the host of the receiver's
 * URL.
 */
export function settingNameInAudit({ section, name, value }: StoredSetting): string {
  return section === 'alerts' ? `${receiverHost(value)} (${name})` : name
}

/** The fields of a setting: those of its value if that is an object, otherwise a single field `value`. */
export function settingFieldsInAudit({ section, name, value }: StoredSetting, secrets: Secrets): Fields {
  if (section === 'alerts') {
    const { url, secret, events } = asObject(value)
    return {
      host: receiverHost(value),
      events: events ?? null,
      url: secretValue(url ?? null, secrets),
      secret: secretValue(secret ?? null, secrets),
    }
  }
  if (section === 'guards') return guardFields(asObject(value), secrets)
  if (section === 'mcp_servers') return mcpServerFields(asObject(value), secrets)
  const path = Object.hasOwn(OPTIONS, name) ? `options.${name}` : name
  const isOpen = section !== 'options' || (name === 'guards' && !haveCredentials(value, secrets))
  const shown = (place: string, one: Json): Json | Secret =>
    !isOpen && holdsSecret(place) ? secretValue(one, secrets) : one
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).map(([field, one]) => [field, shown(`${path}.${field}`, one)]))
    : { value: shown(path, value) }
}

/** Whether a guard in the list contains credentials of a service. */
function haveCredentials(guards: Json, secrets: Secrets): boolean {
  return Array.isArray(guards) && guards.some((one) => 'credentials' in guardFields(asObject(one), secrets))
}

function guardFields(guard: JsonObject, secrets: Secrets): Fields {
  const match = asObject(guard['match'] ?? null)
  const service = Object.keys(match).find((kind) => Object.keys(asObject(match[kind] ?? null)).length > 0)
  if (service === undefined) return guard
  const given = asObject(match[service] ?? null)
  const isSecret = (name: string): boolean => isSecretSetting(`guards.match.${service}.${name}`)
  const shown = Object.entries(given).filter(([name]) => !isSecret(name))
  const hidden = Object.entries(given).filter(([name]) => isSecret(name))
  return {
    ...guard,
    match: { ...match, [service]: Object.fromEntries(shown) },
    ...(hidden.length > 0 && { credentials: secretValue(Object.fromEntries(hidden), secrets) }),
  }
}

function mcpServerFields(server: JsonObject, secrets: Secrets): Fields {
  return Object.fromEntries(
    Object.entries(server).map(([name, value]) => {
      const isAddress = name === 'url' || name === 'token_url'
      const isSecret = isSecretSetting(`mcp.servers.${name}`) || (isAddress && !isPlainAddress(value))
      return [name, isSecret ? secretValue(value, secrets) : value]
    }),
  )
}

function receiverHost(value: Json): string {
  const { url } = asObject(value)
  return typeof url === 'string' ? (URL.parse(url)?.host ?? '') : ''
}

function auditFields({ columns }: RecordColumns, row: object): Fields {
  const values = row as Readonly<Record<string, Stored>>
  const audited = columns.filter(({ audit }) => audit)
  return Object.fromEntries(
    audited.map(({ audit, field, name, secret, type }) => {
      const value = values[name] ?? null
      const shown = secret ? secretOf(value as string | null) : (type.decode(value) as Json)
      return [typeof audit === 'string' ? audit : field, shown]
    }),
  )
}

function secretOf(hash: string | null): Secret | null {
  return hash === null ? null : new Secret(hash)
}

function secretValue(value: Json, secrets: Secrets): Secret {
  return new Secret(hmacOf(secrets, 'audit', JSON.stringify(value)))
}

/** Paths that belong to the API of a provider or an MCP server. Any other path may contain a key, as some servers expect. */
const PLAIN_PATH = /^(?:\/(?:v\d+(?:(?:alpha|beta)\d*)?|api|openai|anthropic|mcp))*\/?$/

/**
 * Whether an address can be shown: it contains no credentials, no query, and no path that may contain a key.
 */
function isPlainAddress(value: Json): boolean {
  const url = typeof value === 'string' ? URL.parse(value) : null
  const isPlain = url && url.username === '' && url.password === '' && PLAIN_PATH.test(url.pathname)
  return Boolean(isPlain && url.search === '' && url.hash === '')
}

function isEmptyJson(value: Json): boolean {
  return ['{}', '[]', '""', 'null', 'false'].includes(JSON.stringify(value))
}
