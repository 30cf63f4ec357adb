import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { DeclaredSetting } from '../../domain/audit.ts'
import type { KeptKind } from '../../domain/kept.ts'
import type { ListedRetirement } from '../../domain/model-retirement.ts'
import type { User, UserRow, DeclaredUser } from '../../domain/records/user.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import type { Token, TokenRow, DeclaredToken } from '../../domain/records/token.ts'
import { declaredRows, isSameRows } from '../audit/declared-rows.ts'
import type { DeclaredRow, StoredSettingRow } from '../row-types.ts'
import { channelFromRow, storedSettingFromRow } from '../channel-rows.ts'
import type { ChannelRow } from '../../domain/records/channel.ts'
import type { Secrets } from '../secrets.ts'
import { declaredContentColumns } from '../content-log-columns.ts'
import { declaredUsageLimitColumns } from '../usage-limit-columns.ts'
import { tokenFromRow, userFromRow } from '../account-rows.ts'

/** Columns that a declaration in gateway.yaml may change, and the columns that identify a row. */
const DECLARED_COLUMNS =
  'id, status, deleted_time, budget, budget_period, rate_limit_requests, rate_limit_tokens, ' +
  'rate_limit_parallel, rate_limit_window, content_log_what, content_log_sample, content_log_keep'

/**
 * The reads that every start and the first call of a key need. They are prepared statements on the writer's
 * thread, so that a gateway without new users, calls and kept contents loads neither a second thread nor Kysely.
 * Each method returns the same result as the read operation with the same name.
 */
export class LocalReads {
  readonly #tokenByHash: StatementSync
  readonly #userById: StatementSync
  readonly #count: StatementSync
  readonly #userByName: StatementSync
  readonly #tokensByName: StatementSync
  readonly #formerNames: StatementSync
  readonly #channels: StatementSync
  readonly #entries: StatementSync
  readonly #alertState: StatementSync
  readonly #declared: StatementSync
  readonly #anyCall: StatementSync
  readonly #anyKept: StatementSync
  readonly #anyOfKinds: StatementSync
  readonly #modelEnds: StatementSync
  readonly #secrets: Secrets

  constructor(db: DatabaseSync, secrets: Secrets) {
    this.#secrets = secrets
    this.#channels = db.prepare('SELECT * FROM channels ORDER BY id')
    this.#entries = db.prepare('SELECT * FROM stored_settings ORDER BY section, name')
    this.#alertState = db.prepare(
      'SELECT EXISTS (SELECT 1 FROM alert_thresholds) OR EXISTS (SELECT 1 FROM alert_conditions) ' +
        'OR EXISTS (SELECT 1 FROM alert_outbox) AS present',
    )
    this.#anyCall = db.prepare('SELECT EXISTS (SELECT 1 FROM usage_log) AS present')
    this.#anyKept = db.prepare('SELECT EXISTS (SELECT 1 FROM kept) AS present')
    this.#anyOfKinds = db.prepare(
      'SELECT EXISTS (SELECT 1 FROM kept WHERE kind IN (SELECT value FROM json_each(?))) AS present',
    )
    this.#modelEnds = db.prepare('SELECT * FROM model_ends ORDER BY source, model')
    this.#declared = db.prepare('SELECT * FROM declared_settings')
    this.#tokenByHash = db.prepare('SELECT * FROM tokens WHERE key_hash = ?')
    this.#userById = db.prepare('SELECT * FROM users WHERE id = ?')
    this.#count = db.prepare('SELECT count(*) AS count FROM users')
    this.#userByName = db.prepare(`SELECT ${DECLARED_COLUMNS} FROM users WHERE username = ?`)
    this.#tokensByName = db.prepare(
      `SELECT name, operator_terms, remain_quota, used_quota, ${DECLARED_COLUMNS} FROM tokens WHERE user_id = ? AND name IN (SELECT value FROM json_each(?))`,
    )
    this.#formerNames = db.prepare(
      'SELECT first_username FROM users WHERE first_username IN (SELECT value FROM json_each(?))',
    )
  }

  tokenByKeyHash(keyHash: string): { readonly token: Token; readonly user: User } | null {
    const token = this.#tokenByHash.get(keyHash) as TokenRow | undefined
    if (!token) return null
    const user = this.#userById.get(token.user_id) as unknown as UserRow
    return { token: tokenFromRow(token), user: userFromRow(user) }
  }

  hasAlertState(): boolean {
    return this.#alertState.get()?.['present'] === 1
  }

  hasCalls(): boolean {
    return this.#anyCall.get()?.['present'] === 1
  }

  hasKept({ kinds }: { readonly kinds?: readonly KeptKind[] }): boolean {
    const found = kinds ? this.#anyOfKinds.get(JSON.stringify(kinds)) : this.#anyKept.get()
    return found?.['present'] === 1
  }

  modelRetirements(): ListedRetirement[] {
    return this.#modelEnds.all() as unknown as ListedRetirement[]
  }

  countUsers(): number {
    return this.#count.get()?.['count'] as number
  }

  storedConfiguration(): StoredConfiguration {
    const channels = this.#channels.all() as unknown as ChannelRow[]
    const entries = this.#entries.all() as unknown as StoredSettingRow[]
    return {
      channels: channels.map((row) => channelFromRow(row, this.#secrets)),
      entries: entries.map((row) => storedSettingFromRow(row, this.#secrets)),
    }
  }

  /**
   * Whether these settings are stored already, so that `recordDeclaredRows` would change nothing. This is
   * true at most starts.
   */
  hasDeclared(settings: readonly DeclaredSetting[]): boolean {
    const present = this.#declared.all() as unknown as DeclaredRow[]
    return isSameRows(present, declaredRows(settings, this.#secrets))
  }

  /** Returns the indexes of the declarations for which `seedUsers` may change something; usually none. */
  pendingDeclaredUsers({ seeds }: { readonly seeds: readonly DeclaredUser[] }): number[] {
    const renamed = this.#renamed(seeds)
    return seeds.flatMap((seed, index) => (!renamed.has(seed.username) && this.#hasSeed(seed) ? [] : [index]))
  }

  /**
   * Declared usernames that a user had originally, but no longer has. A user who has such a name now is a
   * different one.
   */
  #renamed(seeds: readonly DeclaredUser[]): ReadonlySet<unknown> {
    const names = JSON.stringify(seeds.map(({ username }) => username))
    return new Set(this.#formerNames.all(names).map((user) => user['first_username']))
  }

  #hasSeed(seed: DeclaredUser): boolean {
    const user = this.#userByName.get(seed.username)
    if (!user || (seed.status !== undefined && seed.status !== user['status'])) return false
    if (user['deleted_time'] !== null) return true
    if (!hasContentLog(user, seed)) return false
    return (
      hasLimits(user, declaredUsageLimitColumns(seed.limits)) &&
      this.#hasTokens(user['id'] as number, seed.tokens)
    )
  }

  #hasTokens(userId: number, declared: readonly DeclaredToken[]): boolean {
    if (declared.length === 0) return true
    const names = JSON.stringify(declared.map(({ name }) => name))
    const tokens = Map.groupBy(this.#tokensByName.all(userId, names), (token) => token['name'])
    return declared.every((seed) =>
      tokens
        .get(seed.name)
        ?.every(
          (token) =>
            token['deleted_time'] !== null ||
            ((seed.status === undefined || token['status'] === seed.status) &&
              hasContentLog(token, seed) &&
              hasLimits(token, declaredUsageLimitColumns(seed.limits, token as never, seed))),
        ),
    )
  }
}

function hasContentLog(
  row: Readonly<Record<string, unknown>>,
  seed: Parameters<typeof declaredContentColumns>[0],
): boolean {
  return Object.entries(declaredContentColumns(seed)).every(([name, value]) => row[name] === value)
}

function hasLimits(
  row: Readonly<Record<string, unknown>>,
  limits: Readonly<Record<string, unknown>>,
): boolean {
  return Object.entries(limits).every(([name, value]) => row[name] === value)
}
