import { lookupKey } from '../domain/api-key.ts'
import { allowListLines, isAddressRange } from '../domain/ip-allow-list.ts'
import type { Settings } from '../domain/settings.ts'
import { TOKEN_STATUS, type TokenStatus } from '../domain/records/token.ts'
import { newTokenFields } from '../management/tokens/token-fields.ts'
import type { ImportedToken } from '../store/operations/import-account.ts'
import { type Cells, UnreadableValue } from './cells.ts'
import { AUTO_GROUP } from './plan-groups.ts'
import type { Units } from './units.ts'

/** Earliest valid expiry, in Unix seconds. */
const LONG_EXPIRED = 1
const MAX_NAME_LENGTH = 50

/** Token whose ids are not allocated yet. */
export type ReadToken = Omit<ImportedToken, 'id' | 'user_id'>

/** Reads a token. Adds notes about changes. Throws `UnreadableValue` if its key or quota is unreadable. */
export function readToken(
  cells: Cells,
  userGroup: string,
  units: Units,
  settings: Settings,
  nowSeconds: number,
): ReadToken {
  const limits = limitsOf(cells)
  const remain = units.convert('remain_quota', cells.integer('remain_quota'))
  const used = units.convert('used_quota', Math.max(0, cells.integer('used_quota')))
  const parsed = newTokenFields.shape.remain_quota.safeParse(remain)
  if (!parsed.success) throw new UnreadableValue('remain_quota', 'an amount that can be counted here')
  return {
    key: keyOf(cells),
    name: nameOf(cells),
    status: statusOf(cells),
    created_time: timeOf(cells, 'created_time', nowSeconds),
    accessed_time: timeOf(cells, 'accessed_time', 0),
    expired_time: expiryOf(cells),
    remain_quota: remain,
    unlimited_quota: cells.flag('unlimited_quota'),
    used_quota: used,
    model_limits_enabled: limits.enabled,
    model_limits: limits.models,
    allow_ips: addressesOf(cells),
    group: groupOf(cells, userGroup, settings),
  }
}

// Notes and errors never contain the key.
function keyOf(cells: Cells): string {
  const key = cells
    .text('key')
    .trim()
    .replace(/^(?:sk-)+/, '')
  if (lookupKey(key) === key) return key
  throw new UnreadableValue(
    'key',
    '1 to 128 letters and digits; others could not be found when they are sent',
  )
}

function nameOf(cells: Cells): string {
  const given = cells
    .lenient(() => cells.text('name'), '')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
  if (newTokenFields.shape.name.safeParse(given).success) return given
  const short = Array.from(given).slice(0, MAX_NAME_LENGTH).join('').trim()
  const name = newTokenFields.shape.name.safeParse(short).success ? short : `token ${cells.integer('id')}`
  cells.note(`name: now ${JSON.stringify(name)}, as names have 1 to ${MAX_NAME_LENGTH} characters`)
  return name
}

function statusOf(cells: Cells): TokenStatus {
  const status = cells.integer('status', TOKEN_STATUS.enabled)
  const known = Object.values(TOKEN_STATUS).find((one) => one === status)
  if (known !== undefined) return known
  cells.note(`status: ${status} is unknown; disabled`)
  return TOKEN_STATUS.disabled
}

function timeOf(cells: Cells, column: string, otherwise: number): number {
  return Math.max(
    0,
    cells.lenient(() => cells.integer(column, otherwise), otherwise),
  )
}

/** Reads the expiry: -1 means never there, and any other time in the past has expired. */
function expiryOf(cells: Cells): number {
  const time = cells.integer('expired_time', -1)
  if (time === -1 || time > 0) return time
  cells.note(`expired_time: ${time} is long ago; the key has expired`)
  return LONG_EXPIRED
}

/** Reads the model limits: two columns in new-api, one in one-api, where any name is a limit. */
function limitsOf(cells: Cells): { readonly enabled: boolean; readonly models: string } {
  if (!cells.isAbsent('model_limits_enabled')) {
    return { enabled: cells.flag('model_limits_enabled'), models: limitText(cells, 'model_limits') }
  }
  const models = limitText(cells, 'models')
  return { enabled: models !== '', models }
}

function limitText(cells: Cells, column: string): string {
  const text = cells.text(column).trim()
  if (newTokenFields.shape.model_limits.safeParse(text).success) return text
  throw new UnreadableValue(column, 'names of models with commas between them, at most 65536 characters')
}

/** Keeps valid addresses only, as the other gateway does; if there are none, nobody may use the key. */
function addressesOf(cells: Cells): string | null {
  const column = cells.isAbsent('allow_ips') ? 'subnet' : 'allow_ips'
  const lines = allowListLines(cells.text(column).replaceAll(/[ \t]/g, '').replaceAll(',', '\n'))
  const good = lines.filter(isAddressRange)
  const kept = (good.length > 0 ? good : lines).join('\n')
  if (lines.length === 0) return null
  if (kept.length > 65_536) throw new UnreadableValue(column, 'at most 65536 characters')
  if (good.length === 0) cells.note(`${column}: it holds no address; no client can use the key, as before`)
  else if (good.length < lines.length)
    cells.note(`${column}: left out invalid addresses (${lines.length - good.length} of ${lines.length})`)
  return kept
}

function groupOf(cells: Cells, userGroup: string, settings: Settings): string {
  const group = cells.text('group').trim()
  if (group === '') return ''
  if (group === AUTO_GROUP) {
    cells.note('group: "auto" is not known here; the key has the group of its user')
    return ''
  }
  const known = settings.groups.get(group)
  if (!known) throw new UnreadableValue('group', 'a group that carries over')
  if (!known.open && group !== userGroup) {
    cells.note(
      `group: ${JSON.stringify(group)} is closed and not its user's: calls are refused until that changes`,
    )
  }
  return group
}
