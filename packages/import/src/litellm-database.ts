import { createHash } from 'node:crypto'
import { type LitellmBudget, Limits, microDollars, noCall } from './litellm-limits.ts'
import { MAX_COUNTED_ROWS, type NotImportedTable } from './other-gateway.ts'
import { RowReader, UnreadableValue } from './row-reader.ts'
import type { SourceDatabase, SourceRow } from './source.ts'

/** The accounts in the database of a LiteLLM proxy, in the columns of `OtherGatewayDatabase`; amounts in micro-dollars. */
export interface LitellmAccounts {
  /** Their ids are negative, because LiteLLM has none that are numbers. */
  readonly users: readonly SourceRow[]
  /** `team_models` are the models to which the team of a key, or without a team its user, limits it; empty for all. */
  readonly tokens: readonly SourceRow[]
  readonly teams: readonly LitellmTeam[]
  /** Rows that are not imported. */
  readonly left: readonly (LeftRow & { readonly kind: 'user' | 'token' | 'group' | 'channel' })[]
  /** Sections of the configuration that are stored in the database, as JSON. */
  readonly settings: ReadonlyMap<string, string>
  readonly leftTables: readonly NotImportedTable[]
}

/** A team, which becomes a group. */
export interface LitellmTeam {
  readonly name: string
  readonly budget: LitellmBudget | undefined
  /** Sentences about what is not imported of it. */
  readonly notes: readonly string[]
}

/** A row that is not imported, and a sentence that says why. */
interface LeftRow {
  readonly name: string
  readonly note: string
}

/** Quota units per dollar of the amounts in `LitellmAccounts`. */
export const LITELLM_UNITS_PER_DOLLAR = '1000000'

const TABLES = {
  users: 'LiteLLM_UserTable',
  keys: 'LiteLLM_VerificationToken',
  teams: 'LiteLLM_TeamTable',
  budgets: 'LiteLLM_BudgetTable',
  models: 'LiteLLM_ProxyModelTable',
  settings: 'LiteLLM_Config',
} as const

const LIMITS = [
  'max_budget',
  'budget_duration',
  'budget_limits',
  'tpm_limit',
  'rpm_limit',
  'max_parallel_requests',
  'model_max_budget',
  'metadata',
] as const

/** Columns that are read if they exist; some versions lack some of them. */
const COLUMNS = {
  users: [...LIMITS, 'user_id', 'user_alias', 'user_email', 'user_role', 'spend', 'models', 'created_at'],
  keys: [
    ...LIMITS,
    'token',
    'key_name',
    'key_alias',
    'spend',
    'total_spend',
    'expires',
    'models',
    'aliases',
    'user_id',
    'team_id',
    'blocked',
    'budget_id',
    'allowed_routes',
    'created_at',
    'created_by',
    'last_active',
  ],
  teams: [...LIMITS, 'team_id', 'team_alias', 'spend', 'models', 'blocked', 'model_id'],
  budgets: [...LIMITS, 'budget_id'],
  models: ['model_name'],
  settings: ['param_name', 'param_value'],
} as const

/** Tables that contain nothing of their own: sums, work of the proxy itself, and what is read with the keys. */
const DERIVED =
  /^(?:_prisma_migrations|LiteLLM_(?:Daily|CronJob|HealthCheck|ProxyWorker|Telemetry|ErrorLogs|BudgetWindow))/

/** Team of the keys that logins of LiteLLM's dashboard have. */
const DASHBOARD_TEAM = 'litellm-dashboard'

/** Reads the accounts of a LiteLLM proxy; undefined if the database is none of LiteLLM. `masterKey`: its master key, if it is known. */
export async function readLitellmDatabase(
  source: SourceDatabase,
  masterKey: string | undefined,
): Promise<LitellmAccounts | undefined> {
  if ((await source.columnsOf(TABLES.keys)).length === 0) return undefined
  const rowsOf = async (name: keyof typeof TABLES): Promise<readonly RowReader[]> => {
    const present = await source.columnsOf(TABLES[name])
    const wanted = COLUMNS[name].filter((column) => present.includes(column))
    if (wanted.length === 0) return []
    return (await source.rows(TABLES[name], wanted)).map((row) => new RowReader(row))
  }
  const accounts = new Accounts(await rowsOf('budgets'), await rowsOf('teams'), await rowsOf('users'))
  accounts.addKeys(await rowsOf('keys'), masterKey)
  accounts.leaveModels(await rowsOf('models'))
  const settings = new Map(
    (await rowsOf('settings')).map((row) => [row.text('param_name'), row.text('param_value')]),
  )
  return { ...accounts.result(), settings, leftTables: await leftTables(source) }
}

async function leftTables(source: SourceDatabase): Promise<NotImportedTable[]> {
  const read = new Set<string>(Object.values(TABLES))
  const left: NotImportedTable[] = []
  for (const name of await source.tables()) {
    if (read.has(name) || DERIVED.test(name)) continue
    const rows = await source.countRows(name, MAX_COUNTED_ROWS).catch(() => undefined)
    if (rows !== 0) left.push({ name, rows })
  }
  return left
}

/** Collects users, keys and teams in the columns that an import of one-api reads. */
class Accounts {
  readonly #budgets: ReadonlyMap<string, RowReader>
  readonly #teams = new Map<string, Team>()
  /** How many teams have a name as their alias or their id. The group `default` is that of all users. */
  readonly #teamNames = new Map([['default', 1]])
  readonly #users = new Map<string, { readonly id: number; readonly models: readonly string[] }>()
  readonly #names = new Set<string>()
  /** Teams and users whose rows cannot be read, such as `team t-1`. */
  readonly #unread = new Set<string>()
  readonly #rows: SourceRow[] = []
  /** Ids of the users with keys of teams. */
  readonly #inTeams = new Set<number>()
  readonly #tokens: SourceRow[] = []
  readonly #left: LitellmAccounts['left'][number][] = []

  constructor(budgets: readonly RowReader[], teams: readonly RowReader[], users: readonly RowReader[]) {
    this.#budgets = new Map(budgets.map((row) => [row.text('budget_id'), row]))
    for (const row of teams)
      for (const name of new Set([row.text('team_id'), aliasOf(row)]))
        this.#teamNames.set(name, (this.#teamNames.get(name) ?? 0) + 1)
    for (const row of teams)
      if (!this.#reading('group', aliasOf(row) || row.text('team_id'), () => this.#addTeam(row)))
        this.#unread.add(`team ${row.text('team_id')}`)
    for (const row of users)
      if (!this.#reading('user', row.text('user_id'), () => this.#addUser(row)))
        this.#unread.add(`user ${row.text('user_id')}`)
  }

  // A row that cannot be read is left, and the others are imported.
  #reading(kind: 'user' | 'token' | 'group', name: string, read: () => void): boolean {
    try {
      read()
      return true
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      this.#left.push({ kind, name, note: error.message })
      return false
    }
  }

  result(): Pick<LitellmAccounts, 'users' | 'tokens' | 'teams' | 'left'> {
    return {
      users: this.#rows.map((row) => (this.#inTeams.has(Number(row['id'])) ? withTeamNote(row) : row)),
      tokens: this.#tokens,
      teams: [...this.#teams.values()].map(({ group }) => group),
      left: this.#left,
    }
  }

  #addTeam(row: RowReader): void {
    const id = row.text('team_id')
    const alias = aliasOf(row)
    const hasComma = alias.includes(',')
    // Ids differ, so names do as well, in whatever order the rows are read.
    const name = alias !== '' && !hasComma && this.#teamNames.get(alias) === 1 ? alias : id
    if (name === 'default') throw new UnreadableValue('team_alias', 'a name that no other group has')
    const limits = new Limits(row)
    const budget = limits.budget(microDollars(row, 'spend'))
    noteOthers(row)
    const notes = [...row.notes]
    if (alias !== '' && name !== alias)
      notes.push(
        `its name is ${JSON.stringify(name)} here, because ${JSON.stringify(alias)} ${hasComma ? 'has a comma' : 'is another group'}`,
      )
    const closed = limits.closed ?? ((limits.amount ?? 1) > 0 ? undefined : noCall('max_budget', 0))
    if (closed !== undefined) notes.push(`${closed}: its keys are disabled`)
    else if (limits.once(0) !== undefined)
      notes.push(
        `max_budget: ${limits.unlike}; ${budget ? 'it has no effect here' : 'the group has no budget'}`,
      )
    if (Object.keys(limits.rateColumns).length > 0)
      notes.push(
        'tpm_limit, rpm_limit and max_parallel_requests do not carry over: groups have no such limits',
      )
    if (!row.isAbsent('model_id')) notes.push('its aliases of models do not carry over')
    this.#teams.set(id, {
      group: { name, budget, notes },
      models: listIn(row, 'models'),
      isBlocked: row.lenient(() => row.flag('blocked'), false) || closed !== undefined,
    })
  }

  #addUser(row: RowReader): void {
    const key = row.text('user_id')
    const limits = new Limits(row)
    const spend = microDollars(row, 'spend')
    const budget = limits.budget(spend)
    const left = limits.once(spend)
    noteOthers(row)
    if (limits.closed !== undefined) row.note(`${limits.closed}: disabled`)
    this.#add(key, {
      username: this.#nameFor([row.text('user_alias'), row.text('user_email'), key]),
      email: row.text('user_email'),
      role: row.text('user_role') === 'proxy_admin' ? 10 : 1,
      status: limits.closed === undefined ? 1 : 2,
      created_at: secondsOf(row, 'created_at'),
      used_quota: spend,
      ...(left === undefined ? { unlimited_quota: true, quota: 0 } : { quota: left }),
      ...budgetColumns(budget),
      ...limits.rateColumns,
      ...notesOf(row.notes, left !== undefined && limits.hasOtherPeriod && limits.unlike),
    })
    this.#users.set(key, { id: -this.#rows.length, models: listIn(row, 'models') })
  }

  #add(key: string, columns: SourceRow): void {
    this.#rows.push({ id: -(this.#rows.length + 1), ...columns })
    this.#users.set(key, { id: -this.#rows.length, models: [] })
  }

  #nameFor(wanted: readonly string[]): string {
    const given = wanted.map((name) => name.trim()).filter((name) => name !== '' && name.length <= 64)
    const name = given.find((one) => !this.#names.has(one)) ?? `${given.at(-1)}-${this.#names.size}`
    this.#names.add(name)
    return name
  }

  /** The user of a key: its own, else one that stands for its team, else one for all keys without both. */
  #ownerOf(userId: string, teamId: string): { readonly id: number; readonly models: readonly string[] } {
    const key = userId === '' ? `team ${teamId}` : userId
    const name = userId === '' ? (this.#teams.get(teamId)?.group.name ?? 'litellm') : userId
    if (!this.#users.has(key))
      this.#add(key, { username: this.#nameFor([name, `${name}-keys`]), unlimited_quota: true, quota: 0 })
    return this.#users.get(key) ?? { id: 0, models: [] }
  }

  addKeys(rows: readonly RowReader[], masterKey: string | undefined): void {
    const master = masterKey === undefined ? undefined : createHash('sha256').update(masterKey).digest('hex')
    for (const [index, row] of rows.entries()) {
      const name = row.text('key_alias').trim() || row.text('key_name').trim() || `key ${index + 1}`
      this.#reading('token', name, () => {
        const token = this.#token(row, name, master)
        if (token) this.#tokens.push({ id: -(this.#tokens.length + 1), ...token })
      })
    }
  }

  #token(row: RowReader, name: string, master: string | undefined): SourceRow | undefined {
    const leave = (note: string): undefined => void this.#left.push({ kind: 'token', name, note })
    const digest = row.text('token')
    const teamId = row.text('team_id')
    if (teamId === DASHBOARD_TEAM) return leave('it is a login of the dashboard')
    if (digest === master) return leave('it is the master key: make a key of an administrator here instead')
    const team = this.#teams.get(teamId)
    const userId = row.text('user_id')
    // Without them the key would have fewer limits than before.
    if (this.#unread.has(`team ${teamId}`)) return leave('the row of its team cannot be read')
    if (this.#unread.has(`user ${userId}`)) return leave('the row of its user cannot be read')
    const owner = this.#ownerOf(userId, teamId)
    if (team) this.#inTeams.add(owner.id)
    const isOwn = userId !== '' && row.text('created_by') === userId
    const hasOthers = teamId !== '' || row.text('budget_id') !== '' || owner.models.length > 0
    const ofBudget = this.#budgets.get(row.text('budget_id'))
    const limits = new Limits(row, ofBudget)
    const spend = microDollars(row, 'spend')
    const budget = limits.budget(spend)
    const left = limits.once(spend)
    const used = Math.max(spend, microDollars(row, 'total_spend'))
    // The proxy looks at the models of the user only where a key has no team.
    const own = limitIn(listIn(row, 'models'))
    const wide = limitIn(team ? team.models : owner.models)
    const models = own ?? wide
    noteOthers(row, ofBudget)
    for (const [kind, id, found] of [
      ['team', teamId, team],
      ['budget', row.text('budget_id'), ofBudget],
    ] as const)
      if (id !== '' && !found)
        row.note(`its ${kind} ${JSON.stringify(id)} is not there: it has no limits of one`)
    if (limits.closed !== undefined) row.note(`${limits.closed}: disabled`)
    else if (team?.isBlocked) row.note('its team is blocked there: disabled')
    return {
      user_id: owner.id,
      key_digest: digest,
      name,
      status:
        row.lenient(() => row.flag('blocked'), false) || limits.closed !== undefined || team?.isBlocked
          ? 2
          : 1,
      created_time: secondsOf(row, 'created_at'),
      accessed_time: secondsOf(row, 'last_active'),
      expired_time: row.isAbsent('expires') ? -1 : secondsOf(row, 'expires'),
      used_quota: used,
      unlimited_quota: left === undefined,
      remain_quota: left ?? 0,
      model_limits_enabled: models !== undefined,
      model_limits: models?.join(',') ?? '',
      team_models: wide?.join(',') ?? '',
      team_group: team?.group.name ?? '',
      // Users may make keys, which then also have the limits of a team, of a budget and of the user.
      by_operator: !isOwn || hasOthers,
      ...budgetColumns(budget),
      ...limits.rateColumns,
      ...notesOf(row.notes, left !== undefined && limits.hasOtherPeriod && limits.unlike),
    }
  }

  /** Reports the models in the database: what they say of their providers is encrypted with a key of LiteLLM. */
  leaveModels(rows: readonly RowReader[]): void {
    const note = 'its settings are encrypted with the salt key of LiteLLM: add the channel here'
    for (const row of rows) this.#left.push({ kind: 'channel', name: row.text('model_name'), note })
  }
}

interface Team {
  readonly group: LitellmTeam
  readonly models: readonly string[]
  readonly isBlocked: boolean
}

/** Notes what a row, or the budget to which it refers, states without an effect here. */
function noteOthers(row: RowReader, budget?: RowReader): void {
  for (const one of budget ? [row, budget] : [row]) {
    for (const column of ['aliases', 'model_max_budget', 'allowed_routes'] as const)
      if (!['', '{}', '[]', 'null'].includes(one.text(column))) row.note(`${column}: has no effect here`)
    // Other members of the metadata limit nothing.
    const metadata = row.lenient(() => one.text('metadata'), '')
    for (const [, name] of metadata.matchAll(/"(model_[rt]pm_limit)": ?\{[^}]/g))
      row.note(`metadata.${name}: has no effect here`)
  }
}

function aliasOf(team: RowReader): string {
  return team.lenient(() => team.text('team_alias').trim(), '')
}

/** The proxy does not count calls with keys of teams against the budget of their user. */
function withTeamNote(user: SourceRow): SourceRow {
  if (user['unlimited_quota'] === true && user['budget'] === undefined) return user
  const note = 'max_budget: here it also limits its keys of teams, whose spend may be part of its spend'
  const others = new RowReader(user).text('notes')
  return { ...user, notes: others === '' ? note : `${others}\n${note}` }
}

function budgetColumns(budget: LitellmBudget | undefined): SourceRow {
  return budget ? { budget: budget.amount, budget_period: budget.period, budget_used: budget.used } : {}
}

function notesOf(notes: readonly string[], more: string | false): SourceRow {
  const all = more ? [...notes, `max_budget: ${more}; what is left can be spent once`] : notes
  return all.length === 0 ? {} : { notes: all.join('\n') }
}

/** Names that stand for lists of models. */
const ALL = new Set(['all-proxy-models', 'all-team-models', '*'])

/** The models of a list; undefined if it limits nothing. */
function limitIn(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 || list.some((name) => ALL.has(name)) ? undefined : list
}

function listIn(row: RowReader, column: string): readonly string[] {
  const text = row.text(column)
  return text === '' ? [] : parseArray(text)
}

/** Parses an array of texts as PostgreSQL writes it: `{a,"b c"}`. */
function parseArray(text: string): readonly string[] {
  if (!text.startsWith('{') || !text.endsWith('}')) throw new UnreadableValue('models', 'a list of texts')
  const found = text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)
  return [...found].map(([, quoted, plain]) => quoted?.replaceAll(/\\(.)/g, '$1') ?? plain ?? '')
}

/** Reads a time that PostgreSQL states without a zone, in UTC, as Unix seconds; 0 if there is none. */
function secondsOf(row: RowReader, column: string): number {
  const text = row.text(column)
  if (text === '') return 0
  const ms = Date.parse(`${text.replace(' ', 'T').replace(/(?:[+-]\d{2}(?::?\d{2})?|Z)$/, '')}Z`)
  if (Number.isNaN(ms)) throw new UnreadableValue(column, 'a time')
  return Math.floor(ms / 1000)
}
