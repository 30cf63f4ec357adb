import { type RowReader, UnreadableValue } from '@sluice/import/row-reader'
import { isAffordableBcrypt } from '../domain/bcrypt-hash.ts'
import type { Settings } from '../domain/settings.ts'
import { Role } from '../domain/role.ts'
import { maxQuota } from '../management/input-fields.ts'
import { isOfType } from '../domain/records/field-types.ts'
import { USER } from '../domain/records/user.ts'
import { emailField } from '../management/users/user-object.ts'
import type { ImportedUser } from '../store/operations/seed-accounts.ts'
import type { QuotaConverter } from './amounts.ts'
import { usageLimitsOf } from './usage-limits-of.ts'

const { fields } = USER

const ENABLED = 1
const DISABLED = 2

/** User whose id is not allocated yet. */
export type UserToImport = Omit<ImportedUser, 'id'>

/**
 * Reads a user. Notes each changed value for the report. Throws `UnreadableValue` if the name or quota is
 * unreadable.
 */
export function readUser(
  cells: RowReader,
  units: QuotaConverter,
  settings: Settings,
  nowSeconds: number,
  keepsRole: (username: string) => boolean,
): UserToImport {
  const username = usernameOf(cells)
  const quota = units.convert('quota', cells.integer('quota'))
  if (Math.abs(quota) > maxQuota(settings)) {
    throw new UnreadableValue('quota', `at most ${maxQuota(settings)} quota units, not ${quota}`)
  }
  return {
    username,
    display_name: displayNameOf(cells),
    role: roleOf(cells, keepsRole(username)),
    status: statusOf(cells),
    group: groupOf(cells, settings),
    quota,
    unlimited_quota: cells.flag('unlimited_quota'),
    ...usageLimitsOf(cells, units),
    used_quota: units.convert('used_quota', Math.max(0, cells.integer('used_quota'))),
    request_count: count(cells, 'request_count'),
    accessToken: accessTokenOf(cells),
    passwordHash: passwordHashOf(cells),
    remark: remarkOf(cells),
    created_time: cells.lenient(() => cells.integer('created_at', nowSeconds), nowSeconds),
    email: emailOf(cells),
    code_host_id: identity(cells, 'github_id'),
    chat_a_id: identity(cells, 'discord_id'),
    oidc_id: identity(cells, 'oidc_id'),
    chat_b_id: identity(cells, 'wechat_id'),
    chat_c_id: identity(cells, 'telegram_id'),
    forum_id: identity(cells, 'linux_do_id'),
    aff_code: identity(cells, 'aff_code'),
    aff_count: count(cells, 'aff_count'),
    aff_quota: cells.lenient(() => units.convert('aff_quota', count(cells, 'aff_quota')), 0),
    aff_history_quota: cells.lenient(() => units.convert('aff_history', count(cells, 'aff_history')), 0),
    payment_customer: identity(cells, 'stripe_customer'),
    ...settingOf(cells),
  }
}

function usernameOf(cells: RowReader): string {
  const username = cells.text('username')
  if (isOfType(fields.username.type, username)) return username
  throw new UnreadableValue('username', '1 to 64 characters without spaces around them')
}

function displayNameOf(cells: RowReader): string | undefined {
  const name = cells.lenient(() => cells.text('display_name').trim(), '')
  if (name === '') return undefined
  if (isOfType(fields.display_name.type, name)) return name
  cells.note('display_name: expected 1 to 64 characters; the username stands in its place')
  return undefined
}

function roleOf(cells: RowReader, isKept: boolean): Role {
  const role = cells.integer('role', Role.user)
  const isKnown = isOfType(fields.role.type, role)
  if (!isKnown) cells.note('role: it is unknown; a common user')
  if (!isKnown || role === Role.user) return Role.user
  cells.note(
    isKept
      ? `role: ${role}, as --role states`
      : `role: ${role} there, a common user here; --role NAME keeps it`,
  )
  return isKept ? role : Role.user
}

function statusOf(cells: RowReader): 1 | 2 {
  const status = cells.integer('status', cells.isNull('status') ? 0 : ENABLED)
  if (status === ENABLED || status === DISABLED) return status
  cells.note(`status: ${status} is unknown; disabled`)
  return DISABLED
}

function groupOf(cells: RowReader, settings: Settings): string {
  const group = cells.lenient(() => cells.text('group').trim(), '') || 'default'
  if (settings.groups.has(group)) return group
  cells.note('group: it does not carry over; the user is in "default"')
  return 'default'
}

function accessTokenOf(cells: RowReader): string | null {
  const token = cells.lenient(() => cells.text('access_token').trim(), '')
  if (token === '') return null
  if (/^[!-~]{8,4096}$/.test(token)) return token
  cells.note('access_token: expected 8 printable characters or more; left out')
  return null
}

function passwordHashOf(cells: RowReader): string | undefined {
  const hash = cells.lenient(() => cells.text('password'), '')
  if (isAffordableBcrypt(hash)) return hash
  if (hash !== '') cells.note('password: expected a bcrypt hash of a cost up to 14; left out')
  return undefined
}

function emailOf(cells: RowReader): string {
  const email = cells.lenient(() => cells.text('email').trim(), '')
  if (emailField.safeParse(email).success) return email
  cells.note('email: expected an e-mail address; left out')
  return ''
}

function remarkOf(cells: RowReader): string {
  const remark = cells.lenient(() => cells.text('remark'), '')
  if (isOfType(fields.remark.type, remark)) return remark
  cells.note('remark: expected at most 255 characters; left out')
  return ''
}

function identity(cells: RowReader, column: string): string {
  const text = cells.lenient(() => cells.text(column).trim(), '')
  if (text.length <= 255) return text
  cells.note(`${column}: expected at most 255 characters; left out`)
  return ''
}

function count(cells: RowReader, column: string): number {
  return Math.max(
    0,
    cells.lenient(() => cells.integer(column), 0),
  )
}

/**
 * Reads the user's own settings, which are kept unchanged. This gateway stores the sidebar in a separate
 * column.
 */
function settingOf(cells: RowReader): { readonly setting: string; readonly sidebar_modules: string } {
  const text = cells.lenient(() => cells.text('setting').trim(), '')
  if (text === '') return { setting: '', sidebar_modules: '' }
  try {
    const setting = JSON.parse(text) as unknown
    if (typeof setting === 'object' && setting !== null && text.length <= 65_536) {
      const modules = (setting as Record<string, unknown>)['sidebar_modules']
      return { setting: text, sidebar_modules: typeof modules === 'string' ? modules : '' }
    }
  } catch {
    // A text that is not JSON gets the same note as JSON that is not an object.
  }
  cells.note('setting: expected a JSON object; left out')
  return { setting: '', sidebar_modules: '' }
}
