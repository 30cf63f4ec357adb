import { quotaDisplay } from '../management/gateway-status.ts'
import { quotaText } from '../management/quota-text.ts'
import { isRowDeleted, type OtherGatewayDatabase } from '@sluice/import/other-gateway'
import { RowReader, UnreadableValue } from '@sluice/import/row-reader'
import type { SourceRow } from '@sluice/import/source'
import { lookupPartOfKey, wholeTextOfKey } from '../domain/api-key.ts'
import { allowListLines, isAddressRange } from '../domain/ip-allow-list.ts'
import { TOKEN_STATUS, type TokenStatus } from '../domain/records/token.ts'
import type { Settings } from '../domain/settings.ts'
import { alphabetMixedWithLatin, nameDifference, isFullyVisible } from '../domain/username.ts'
import { newTokenFields } from '../management/tokens/token-object.ts'
import type { ImportedAccount, ImportedToken, ImportedUser } from '../store/operations/seed-accounts.ts'
import { MAX_IMPORTED_NUMBER, type ImportedAmountSums, type QuotaConverter } from './amounts.ts'
import type { IdentifierAllocator } from './identifier-allocator.ts'
import { AUTO_GROUP, NO_GROUP_RETRY } from './plan-configuration.ts'
import { type UserToImport, readUser } from './plan-users.ts'
import type { ReportLine } from '../domain/import-line.ts'
import { usageLimitsOf } from './usage-limits-of.ts'
import { importedLine } from './report.ts'

/** A user with tokens that are written in one transaction, and its report lines. */
export interface PlannedAccount {
  readonly account: ImportedAccount
  readonly lines: readonly ReportLine[]
}

/** Accounts to be written, and report lines about users and tokens that are not. */
export interface AccountsPlan {
  readonly accounts: readonly PlannedAccount[]
  readonly lines: readonly ReportLine[]
  /** Number of imported users whose password hash this gateway cannot check. */
  readonly passwords: number
}

/** Names in the source that the operator listed on the command line. */
export interface ListedNames {
  /** Users and teams whose tokens are added to the existing user or group with the same name. */
  readonly merge: ReadonlySet<string>
  /** Users who keep their role if it is higher than that of an ordinary user. */
  readonly role: ReadonlySet<string>
}

/** What the plan of users and tokens depends on, apart from the source. */
export interface AccountRules {
  readonly units: QuotaConverter
  /** Settings as they will be after the import. */
  readonly settings: Settings
  readonly identifiers: IdentifierAllocator
  readonly sums: ImportedAmountSums
  readonly stated: ListedNames
  /** Groups here that are not as the teams of those names there. */
  readonly unlikeGroups: ReadonlySet<string>
  readonly nowSeconds: number
}

/** Plans every user of the source with its tokens, in the order of their ids. */
export function planAccounts(
  source: Pick<OtherGatewayDatabase, 'users' | 'tokens'>,
  rules: AccountRules,
): AccountsPlan {
  const lines: ReportLine[] = []
  const accounts: PlannedAccount[] = []
  const tokensOf = tokensByUser(source.tokens, lines)
  const idHere = new Map<number, number>()
  let passwords = 0
  for (const row of source.users) {
    const cells = readerOf(row)
    const id = cells.lenient(() => cells.integer('id'), 0)
    const tokens = tokensOf.get(id) ?? []
    tokensOf.delete(id)
    const owner = planOwner(cells, id, rules, idHere)
    if ('left' in owner) {
      lines.push(owner.left, ...tokens.map((token) => skippedToken(token, 'its user does not carry over')))
      continue
    }
    idHere.set(id, owner.idHere)
    const has_password = cells.lenient(() => cells.text('password'), '') !== ''
    if (owner.user && has_password && owner.user.passwordHash === undefined) passwords += 1
    const planned = planTokens(tokens, owner, rules)
    const account = accountToImport(owner, planned.tokens, cells, rules)
    const userLine = owner.user ? [importedLine('user', shownId(id), owner.username, cells.notes)] : []
    if (!owner.user) lines.push(...owner.lines)
    lines.push(...planned.lines)
    if (account) accounts.push({ account, lines: [...userLine, ...planned.made] })
  }
  for (const orphans of tokensOf.values()) {
    lines.push(...orphans.map((token) => skippedToken(token, 'it belongs to no user')))
  }
  return { accounts, lines, passwords }
}

/** Reads a row, with the sentences that were already noted about it. */
function readerOf(row: SourceRow): RowReader {
  const cells = new RowReader(row)
  for (const note of cells.text('notes').split('\n')) if (note !== '') cells.note(note)
  return cells
}

/** The user in this gateway that imported tokens will belong to: a new or an existing user. */
interface Owner {
  readonly username: string
  readonly idHere: number
  readonly group: string
  readonly user: ImportedUser | undefined
  /**
   * Whether tokens are added to the user. False for an existing user whose name the operator did not list.
   */
  readonly takesTokens: boolean
  readonly lines: readonly ReportLine[]
}

function planOwner(
  cells: RowReader,
  id: number,
  { units, settings, identifiers, sums, stated, nowSeconds }: AccountRules,
  idHere: ReadonlyMap<number, number>,
): Owner | { readonly left: ReportLine } {
  const name = cells.lenient(() => cells.text('username'), '')
  const left = (note: string): { left: ReportLine } => ({
    left: { kind: 'user', id: shownId(id), name, fate: 'left', notes: [note] },
  })
  if (isRowDeleted(cells, 'user')) return left('it is deleted there')
  let read: UserToImport
  try {
    requireCountable(id)
    read = readUser(cells, units, settings, nowSeconds, (username) => stated.role.has(username))
  } catch (error) {
    if (!(error instanceof UnreadableValue)) throw error
    return left(error.message)
  }
  const there = identifiers.userNamed(read.username)
  if (there?.isNew) return left('another user there has that name, but for spaces')
  if (there) {
    if (there.isDeleted) return left('a deleted user here has that name')
    const takesTokens = stated.merge.has(read.username)
    const notes = takesTokens ? ['its tokens that are not there yet are added, as --merge states'] : []
    const line: ReportLine = { kind: 'user', id: shownId(id), name, fate: 'there', notes }
    const { id: idHere, group } = there
    return { username: read.username, idHere, group, user: undefined, takesTokens, lines: [line] }
  }
  if (!isFullyVisible(read.username)) return left('username: it has invisible characters')
  const alphabet = alphabetMixedWithLatin(read.username)
  if (alphabet !== undefined)
    return left(`username: it mixes Latin and ${alphabet} letters; rename the user there, and import again`)
  const alike = identifiers.similarName(read.username)
  if (alike !== undefined)
    return left(`username: it differs from "${alike}" in ${nameDifference(read.username, alike)} alone`)
  try {
    const { quota, used_quota, request_count } = read
    sums.add({ 'users.quota': quota, 'users.used_quota': used_quota, 'users.request_count': request_count })
  } catch (error) {
    if (!(error instanceof UnreadableValue)) throw error
    return left(error.message)
  }
  const own = identifiers.allocateUser(id, read)
  if (id > 0 && own.id !== id) cells.note(`id: ${own.id} here, as ${id} is another user's`)
  if (own.accessToken === null && read.accessToken !== null) {
    cells.note('access_token: another user has it; left out')
  }
  const inviter = idHere.get(cells.lenient(() => cells.integer('inviter_id'), 0)) ?? 0
  const user: ImportedUser = { ...read, ...own, inviter_id: inviter }
  return { username: read.username, idHere: own.id, group: read.group, user, takesTokens: true, lines: [] }
}

function planTokens(
  rows: readonly SourceRow[],
  owner: Owner,
  { units, settings, identifiers, sums, stated, unlikeGroups, nowSeconds }: AccountRules,
): { readonly tokens: ImportedToken[]; readonly made: ReportLine[]; readonly lines: ReportLine[] } {
  const tokens: ImportedToken[] = []
  const made: ReportLine[] = []
  const lines: ReportLine[] = []
  for (const row of rows) {
    const cells = readerOf(row)
    const id = cells.lenient(() => cells.integer('id'), 0)
    let read: ReadToken
    if (isRowDeleted(cells, 'token')) {
      lines.push(skippedToken(row, 'it is deleted there'))
      continue
    }
    try {
      requireCountable(id)
      read = readToken(cells, owner.group, units, settings, nowSeconds)
      if (identifiers.hasKey(read)) {
        lines.push({ kind: 'token', id: shownId(id), name: read.name, fate: 'there', notes: [] })
        continue
      }
      // A key that is sent is first looked up by its part before the first hyphen.
      const beginning = read.key_form === 'whole' ? lookupPartOfKey(read.key) : undefined
      if (beginning !== undefined && identifiers.hasKey({ key: beginning }))
        throw new UnreadableValue(
          'key',
          'another beginning: the part before its hyphen is a key, which would be used instead',
        )
      if (!owner.takesTokens) {
        lines.push(
          skippedToken(row, 'a user here has the name of its user; --merge NAME adds it to that user'),
        )
        continue
      }
      const { team_group: team = '' } = read
      if (unlikeGroups.has(team)) {
        if (!stated.merge.has(team)) {
          lines.push(
            skippedToken(row, 'a group here has the name of its team; --merge NAME adds it to that group'),
          )
          continue
        }
        cells.note(`group: ${JSON.stringify(team)} of this gateway, as --merge states`)
      }
      sums.add({ 'tokens.remain_quota': read.remain_quota, 'tokens.used_quota': read.used_quota })
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      lines.push(skippedToken(row, error.message))
      continue
    }
    const idHere = identifiers.allocateToken(id, read)
    if (id > 0 && idHere !== id) cells.note(`id: ${idHere} here, as ${id} is another token's`)
    tokens.push({ ...read, id: idHere, user_id: owner.idHere })
    made.push(importedLine('token', shownId(id), read.name, cells.notes))
  }
  return { tokens, made, lines }
}

// A gateway that has no numbers as ids gets negative ones when it is read.
function shownId(id: number): number | undefined {
  return id > 0 ? id : undefined
}

function requireCountable(id: number): void {
  if (id > MAX_IMPORTED_NUMBER) throw new UnreadableValue('id', `at most ${MAX_IMPORTED_NUMBER}`)
}

/**
 * Builds the account to write, so that its used quota equals the sum over its tokens. Undefined if there is
 * nothing to write.
 */
function accountToImport(
  { user }: Owner,
  tokens: readonly ImportedToken[],
  cells: RowReader,
  { identifiers, nowSeconds, settings }: AccountRules,
): ImportedAccount | undefined {
  const common = { usedElsewhere: undefined, nowSeconds }
  if (!user) {
    const unused = tokens.map((token) => ({ ...token, used_quota: 0 }))
    return tokens.length > 0 ? { ...common, user, tokens: unused } : undefined
  }
  const used = tokens.reduce((sum, { used_quota }) => sum + used_quota, 0)
  if (used > user.used_quota) {
    const [sum, stated] = [used, user.used_quota].map((one) => quotaText(one, quotaDisplay(settings)))
    cells.note(`used_quota: ${sum}, the sum of its tokens; ${stated} there`)
    return { ...common, user: { ...user, used_quota: used }, tokens }
  }
  if (used === user.used_quota) return { ...common, user, tokens }
  const usedElsewhere = { tokenId: identifiers.newTokenId(), quota: user.used_quota - used }
  return { user, tokens, usedElsewhere, nowSeconds }
}

function tokensByUser(rows: readonly SourceRow[], lines: ReportLine[]): Map<number, SourceRow[]> {
  const byUser = new Map<number, SourceRow[]>()
  for (const row of rows) {
    const cells = new RowReader(row)
    try {
      const userId = cells.integer('user_id')
      const sameUser = byUser.get(userId)
      if (sameUser) sameUser.push(row)
      else byUser.set(userId, [row])
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      lines.push(skippedToken(row, error.message))
    }
  }
  return byUser
}

function skippedToken(row: SourceRow, note: string): ReportLine {
  const cells = new RowReader(row)
  const id = cells.lenient(() => cells.integer('id'), 0)
  const name = cells.lenient(() => cells.text('name'), '')
  return { kind: 'token', id: shownId(id), name, fate: 'left', notes: [note] }
}

/** Stored for a key that expired before 1970: the earliest valid expiry, in Unix seconds. */
const LONG_EXPIRED = 1
const MAX_NAME_LENGTH = 50

/** A token whose own id and user id are not allocated yet. */
type ReadToken = Omit<ImportedToken, 'id' | 'user_id'>

/**
 * Reads a token. Notes each changed value for the report. Throws `UnreadableValue` if its key or quota is
 * unreadable.
 */
function readToken(
  cells: RowReader,
  userGroup: string,
  units: QuotaConverter,
  settings: Settings,
  nowSeconds: number,
): ReadToken {
  const limits = limitsOf(cells)
  const remain = units.convert('remain_quota', cells.integer('remain_quota'))
  const used = units.convert('used_quota', Math.max(0, cells.integer('used_quota')))
  const parsed = newTokenFields.shape.remain_quota.safeParse(remain)
  if (!parsed.success) throw new UnreadableValue('remain_quota', 'an amount that can be counted here')
  return {
    ...keyOf(cells),
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
    ...groupOf(cells, userGroup, settings),
    ...usageLimitsOf(cells, units),
    isByOperator: cells.flag('by_operator'),
  }
}

// Notes and errors never contain the key.
function keyOf(cells: RowReader): Pick<ImportedToken, 'key' | 'key_form'> {
  if (!cells.isAbsent('key_digest')) {
    const digest = cells.text('key_digest')
    if (/^[0-9a-f]{64}$/.test(digest)) return { key: digest, key_form: 'digest' }
    throw new UnreadableValue('token', 'a SHA-256 digest')
  }
  const key = cells
    .text('key')
    .trim()
    .replace(/^(?:sk-)+/, '')
  if (lookupPartOfKey(key) === key) return { key }
  if (wholeTextOfKey(`sk-${key}`) === key) return { key, key_form: 'whole' }
  throw new UnreadableValue(
    'key',
    '1 to 128 letters and digits, or at least 16 printable characters; others could not be found when they are sent',
  )
}

function nameOf(cells: RowReader): string {
  const given = cells
    .lenient(() => cells.text('name'), '')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
  if (newTokenFields.shape.name.safeParse(given).success) return given
  const short = Array.from(given).slice(0, MAX_NAME_LENGTH).join('').trim()
  const name = newTokenFields.shape.name.safeParse(short).success ? short : `token ${cells.integer('id')}`
  cells.note(
    `name: now ${JSON.stringify(name)}, as names have 1 to ${MAX_NAME_LENGTH} characters, none of them invisible`,
  )
  return name
}

function statusOf(cells: RowReader): TokenStatus {
  const status = cells.integer('status', cells.isNull('status') ? 0 : TOKEN_STATUS.enabled)
  const known = Object.values(TOKEN_STATUS).find((one) => one === status)
  if (known !== undefined) return known
  cells.note(`status: ${status} is unknown; disabled`)
  return TOKEN_STATUS.disabled
}

function timeOf(cells: RowReader, column: string, otherwise: number): number {
  return Math.max(
    0,
    cells.lenient(() => cells.integer(column, otherwise), otherwise),
  )
}

/** Reads the expiry in Unix seconds; −1 means that the key never expires. */
function expiryOf(cells: RowReader): number {
  const time = cells.integer('expired_time', cells.isNull('expired_time') ? 0 : -1)
  if (time === -1 || time > 0) return time
  cells.note(`expired_time: ${time} is long ago; the key has expired`)
  return LONG_EXPIRED
}

/**
 * Reads which models a key may use: two columns in new-api; one in one-api, where a nonempty list limits the
 * key.
 */
function limitsOf(cells: RowReader): { readonly enabled: boolean; readonly models: string } {
  if (!cells.isAbsent('model_limits_enabled')) {
    return { enabled: cells.flag('model_limits_enabled'), models: limitText(cells, 'model_limits') }
  }
  const models = limitText(cells, 'models')
  return { enabled: models !== '', models }
}

function limitText(cells: RowReader, column: string): string {
  const text = cells.text(column).trim()
  if (newTokenFields.shape.model_limits.safeParse(text).success) return text
  throw new UnreadableValue(
    column,
    'names of models with commas between them, at most 65536 characters, none of them invisible',
  )
}

/**
 * Keeps only the valid addresses, as the other gateway does. If none is valid, the invalid ones are kept, so
 * that the key still cannot be used from any address.
 */
function addressesOf(cells: RowReader): string | null {
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

function groupOf(
  cells: RowReader,
  userGroup: string,
  settings: Settings,
): Pick<ImportedToken, 'group' | 'team_group'> {
  const team = cells.text('team_group')
  if (team !== '' && settings.groups.has(team)) return { group: team, team_group: team }
  if (team !== '') throw new UnreadableValue('team', 'a team that carries over')
  const group = cells.text('group').trim()
  if (group === '') return { group }
  if (cells.lenient(() => cells.flag('cross_group_retry'), false))
    cells.note(`cross_group_retry: ${NO_GROUP_RETRY}`)
  if (group === AUTO_GROUP) {
    cells.note('group: "auto" is not known here; the key has the group of its user')
    return { group: '' }
  }
  const known = settings.groups.get(group)
  if (!known) throw new UnreadableValue('group', 'a group that carries over')
  if (!known.open && group !== userGroup) {
    cells.note(
      `group: ${JSON.stringify(group)} is closed and not its user's: calls are refused until that changes`,
    )
  }
  return { group }
}
