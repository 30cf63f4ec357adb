import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { type Command, Option } from 'commander'
import { USER } from '../domain/records/user.ts'
import type { SpendingLimit } from '../domain/remaining-spend.ts'
import { Role } from '../domain/role.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { UserObject } from '../management/users/user-object.ts'
import { type Amount, parseAmount, quotaOfAmounts } from './amount.ts'
import { budgetText, isBudgetUsedUp, quotaText } from '../management/quota-text.ts'
import {
  addRecordOptions,
  BUDGET_OPTIONS,
  budgetFromOptions,
  type BudgetOptions,
  changedBudgetFromOptions,
  CONFIG_OPTION,
  fieldsFromOptions,
  JSON_OPTION,
} from './options.ts'
import { plainText } from './plain-text.ts'
import type { CommandContext } from './command-context.ts'
import { addInvitationCommands, warnOfNoQuota } from './invitation-commands.ts'
import { type Column, details, table } from './table.ts'
import { timeText } from './time-text.ts'
import { tokenColumns } from './token-commands.ts'
import {
  type AccountOptions,
  printJson,
  printResult,
  runReportingErrors,
  runWithAccounts,
} from './with-accounts.ts'

const LIST_HELP = `
Quota is shown in quota units, and as an amount of money (options.display).
Example:
  sluice user list --json | jq '.[] | select(.quota < 500000) | .username'`

const CREATE_HELP = `
Amounts are dollars (10usd) or quota units, of which 500000 are one dollar unless options.quota_per_unit says otherwise.
A new user has no API key, no access token and no password: "sluice token create", "sluice user access-token" and
"sluice user password" create them.
Examples:
  sluice user create ann --quota 10usd
  sluice user create ops --role 10 --group vip
  sluice user create sales --quota 1000usd --budget 50usd --per month
  sluice user create lab --unlimited-quota --budget 100usd --per month`

const TOP_UP_HELP = `
Running calls go on; the added quota can be spent at once.
Example:
  sluice user top-up ann 10usd`

const UPDATE_HELP = `
The budget counts from the next call on; a new amount keeps the period, and --budget 0 removes both. What is used of
the period stays used. A budget that gateway.yaml declares is restored when the file is next read.
With --unlimited-quota budgets alone limit the user, and with --limited-quota the quota does again.
Examples:
  sluice user update ann --budget 10usd --per month
  sluice user update ann --budget 0
  sluice user update lab --unlimited-quota`

const DELETE_HELP = `
Running calls go on and are charged. The name can be used again, but a user that gateway.yaml declares is not made
again. The last user with role 100 cannot be deleted.`

const ACCESS_TOKEN_HELP = `
The token is printed once, alone on standard output; only its hash is kept. The former token stops working.
Example:
  ACCESS_TOKEN=$(sluice user access-token ann)`

const PASSWORD_HELP = `
The user logs in with the password, 8 to 128 characters. At a terminal the command prompts for it and does not show
it; else it reads one line from standard input. All sessions of the user end; if the user had a password before,
its access token stops working too.
Examples:
  sluice user password ann
  openssl rand -base64 18 | tee ann.txt | sluice user password ann`

/** Adds the commands `sluice user …`. */
export function addUserCommands(program: Command, shell: CommandContext): void {
  const user = program.command('user').description('manage users and their quota')

  addRecordOptions(user.command('create <name>').description('make a user'), USER.fields)
    .addOption(BUDGET_OPTIONS[0])
    .addOption(BUDGET_OPTIONS[1])
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', CREATE_HELP)
    .action(
      (
        name: string,
        options: AccountOptions & BudgetOptions & { readonly quota?: Amount },
        command: Command,
      ) => create(shell, name, options, budgetFromOptions(options, command)),
    )

  addInvitationCommands(user, shell)

  user
    .command('list')
    .description('all users, with quota, use, budget and status')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', LIST_HELP)
    .action((options: AccountOptions) => list(shell, options))

  user
    .command('show <name>')
    .description('one user: what is left, used and reserved, limits, and API keys')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((name: string, options: AccountOptions) => show(shell, name, options))

  user
    .command('disable <name>')
    .description("refuse all of a user's keys, from the next call on")
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((name: string, options: AccountOptions) => disable(shell, name, options))

  user
    .command('enable <name>')
    .description("let a user's keys work again")
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((name: string, options: AccountOptions) => enable(shell, name, options))

  user
    .command('delete <name>')
    .description('delete a user with all keys; its usage and charges stay')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', DELETE_HELP)
    .action((name: string, options: AccountOptions) => remove(shell, name, options))

  user
    .command('update <name>')
    .description("set a user's budget, or whether budgets alone limit the user")
    .addOption(BUDGET_OPTIONS[0])
    .addOption(BUDGET_OPTIONS[1])
    .addOption(new Option('--unlimited-quota', 'limit the user by budgets alone').conflicts('limitedQuota'))
    .option('--limited-quota', 'limit the user by its quota, too')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', UPDATE_HELP)
    .action((name: string, options: UpdateOptions, command: Command) => update(shell, name, options, command))

  user
    .command('top-up <name> <amount>')
    .description("add dollars (10usd) or quota units to a user's balance")
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', TOP_UP_HELP)
    .action((name: string, amount: string, options: AccountOptions) => topUp(shell, name, amount, options))

  user
    .command('access-token <name>')
    .description("issue a new access token for the account API, which replaces the user's old one")
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', ACCESS_TOKEN_HELP)
    .action((name: string, options: AccountOptions) => accessToken(shell, name, options))

  user
    .command('password <name>')
    .description('set the password that a user logs in with')
    .option('--keep-access-tokens', 'keep the access token, even if the password replaces another')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', PASSWORD_HELP)
    .action((name: string, options: AccountOptions) => password(shell, name, options))
}

function create(
  shell: CommandContext,
  username: string,
  options: AccountOptions & { readonly quota?: Amount },
  { budget, ...period }: ReturnType<typeof budgetFromOptions>,
): Promise<void> {
  return printResult(
    shell,
    options,
    'createUser',
    (display) => ({
      username,
      ...fieldsFromOptions(USER.fields, options),
      ...period,
      ...quotaOfAmounts(shell, display, { quota: options.quota, budget }),
    }),
    (made, display) => {
      if (made.role === Role.user && !made.unlimited_quota && made.quota === 0)
        warnOfNoQuota(shell, plainText(made.username))
      return `Created the user ${named(made)} with the quota ${quotaOf(made, display)}.\n`
    },
    { createsDatabase: true },
  )
}

function list(shell: CommandContext, options: AccountOptions): Promise<void> {
  return printResult(shell, options, 'listUsers', {}, (users, display) =>
    table(users, userColumns(display), shell.out),
  )
}

async function show(shell: CommandContext, user: string, options: AccountOptions): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const found = await accounts.run('showUser', { user })
    const tokens = await accounts.run('listTokens', { user })
    if (options.json) return printJson(shell, { ...found, tokens })
    const display = await accounts.display()
    const { left, left_by, last_active, remark } = found
    const leftText = left === null ? 'unlimited' : quotaText(left, display)
    shell.out.write(
      details([
        ['name', named(found)],
        ['role', NAMES.get(found.role) ?? String(found.role)],
        ['status', found.status === 1 ? 'enabled' : 'disabled: all keys are refused'],
        ['group', found.group],
        ['quota', quotaOf(found, display)],
        ['used', `${quotaText(found.used_quota, display)} in ${found.request_count} calls`],
        ['budget', budgetText(found, display)],
        ['may spend', left_by === null ? leftText : `${leftText}, limited by ${LIMIT_WORDS[left_by]}`],
        ['rate limit', rateLimitText(found)],
        ['last active', last_active === 0 ? 'never' : timeText(last_active)],
        ...(remark ? [['remark', remark] as const] : []),
        ['keys', String(tokens.length)],
      ]),
    )
    if (tokens.length > 0) shell.out.write(`\n${table(tokens, tokenColumns(display), shell.out)}`)
  })
}

const LIMIT_WORDS: Readonly<Record<SpendingLimit, string>> = {
  key: 'the quota of the key',
  user: 'the quota of the user',
  key_budget: 'the budget of the key',
  user_budget: 'the budget of the user',
  group_budget: 'the budget of the group',
}

function rateLimitText(limits: UserObject): string {
  const { rate_limit_requests, rate_limit_tokens, rate_limit_parallel, rate_limit_window } = limits
  const parts = [
    ...(rate_limit_requests > 0 ? [`${rate_limit_requests} calls in ${rate_limit_window} s`] : []),
    ...(rate_limit_tokens > 0 ? [`${rate_limit_tokens} tokens in ${rate_limit_window} s`] : []),
    ...(rate_limit_parallel > 0 ? [`${rate_limit_parallel} calls at once`] : []),
  ]
  return parts.join(', ') || 'none'
}

/** Returns a command that runs an operation on one user, and prints its effect. */
function onUser(operation: 'disableUser' | 'enableUser' | 'removeUser', effect: string) {
  return (shell: CommandContext, user: string, options: AccountOptions): Promise<void> =>
    printResult(shell, options, operation, { user }, (changed) => `${named(changed)} ${effect}.\n`)
}

const disable = onUser('disableUser', 'is disabled: every key is refused from now on')
const enable = onUser('enableUser', 'is enabled')
const remove = onUser('removeUser', 'is deleted: every key is refused from now on')

function update(
  shell: CommandContext,
  user: string,
  options: UpdateOptions,
  command: Command,
): Promise<void> {
  const isUnlimited = options.unlimitedQuota ? true : options.limitedQuota ? false : undefined
  const { budget, ...period } =
    isUnlimited === undefined || options.budget || options.per
      ? changedBudgetFromOptions(options, command)
      : { budget: undefined }
  return printResult(
    shell,
    options,
    'budgetUser',
    (display) => ({
      user,
      ...period,
      ...(isUnlimited !== undefined && { unlimited_quota: isUnlimited }),
      ...quotaOfAmounts(shell, display, { budget }),
    }),
    (changed, display) =>
      `The budget of ${named(changed)}: ${budgetText(changed, display)}.${isUnlimited === undefined ? '' : ` Its quota: ${quotaOf(changed, display)}.`}\n`,
  )
}

interface UpdateOptions extends AccountOptions, BudgetOptions {
  readonly unlimitedQuota?: boolean
  readonly limitedQuota?: boolean
}

function topUp(shell: CommandContext, user: string, given: string, options: AccountOptions): Promise<void> {
  return runReportingErrors(shell, () => {
    const amount = parseAmount(given)
    return printResult(
      shell,
      options,
      'topUpUser',
      (display) => ({ user, amount: 0, ...quotaOfAmounts(shell, display, { amount }) }),
      (changed, display) => `${named(changed)} has ${quotaOf(changed, display)} now.\n`,
    )
  })
}

async function accessToken(shell: CommandContext, user: string, options: AccountOptions): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const issued = await accounts.run('issueAccessToken', { user })
    if (options.json) printJson(shell, issued)
    else {
      shell.err.write(`The new access token of ${named(issued)}, printed once:\n`)
      shell.out.write(`${issued.access_token}\n`)
    }
  })
}

async function password(
  shell: CommandContext,
  user: string,
  { keepAccessTokens, ...options }: AccountOptions & { readonly keepAccessTokens?: boolean },
): Promise<void> {
  await runReportingErrors(shell, async () => {
    // Asks for the password before the data folder is locked, so that slow typing does not block other
    // commands.
    const input = { user, password: await readPassword(shell), keep_access_tokens: keepAccessTokens }
    await printResult(
      shell,
      options,
      'setPassword',
      input,
      (changed) => `${named(changed)} has a new password.\n`,
    )
  })
}

function named({ id, username }: { readonly id: number; readonly username: string }): string {
  return `${plainText(username)} (id ${id})`
}

const NAMES = new Map<number, string>(Object.entries(Role).map(([name, role]) => [role, name]))

/** The columns of `sluice user list`. */
function userColumns(display: QuotaDisplay): readonly Column<UserObject>[] {
  return [
    { title: 'ID', cell: ({ id }) => String(id), right: true },
    { title: 'NAME', cell: ({ username }) => username },
    { title: 'ROLE', cell: ({ role }) => NAMES.get(role) ?? String(role) },
    {
      title: 'STATUS',
      cell: ({ status }) => (status === 1 ? 'enabled' : 'disabled'),
      warns: ({ status }) => status !== 1,
    },
    { title: 'GROUP', cell: ({ group }) => group },
    {
      title: 'QUOTA',
      cell: (user) => quotaOf(user, display),
      right: true,
      warns: ({ quota, unlimited_quota }) => !unlimited_quota && quota <= 0,
    },
    { title: 'USED', cell: ({ used_quota }) => quotaText(used_quota, display), right: true },
    { title: 'BUDGET', cell: (user) => budgetText(user, display), warns: isBudgetUsedUp },
    { title: 'REQUESTS', cell: ({ request_count }) => String(request_count), right: true },
  ]
}

/** Maximum number of bytes of a password that are read from standard input. */
const MAX_BYTES = 16_384

/**
 * Reads a password: typed twice without echo at a terminal, otherwise one line of standard input. It is never
 * an argument, because other users of the machine could see that. Throws an error with a readable message.
 */
async function readPassword(shell: CommandContext): Promise<string> {
  if (!shell.input.isTTY) return oneLine(await readAll(shell))
  const first = await prompted(shell, 'New password: ')
  if ((await prompted(shell, 'Repeat it: ')) === first) return first
  throw new Error('the two passwords differ; nothing was changed')
}

async function prompted({ input, err }: CommandContext, prompt: string): Promise<string> {
  err.write(prompt)
  // The terminal echoes what is typed to this stream, which discards it.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: silent, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new Error('cancelled; nothing was changed')))
      lines.once('close', () => reject(new Error('no password was given; nothing was changed')))
    })
  } finally {
    lines.close()
    err.write('\n')
  }
}

async function readAll({ input }: CommandContext): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of input) {
    chunks.push(chunk as Buffer)
    length += (chunk as Buffer).length
    if (length > MAX_BYTES) break
  }
  return Buffer.concat(chunks).toString()
}

function oneLine(text: string): string {
  const line = text.replace(/\r?\n$/, '')
  if (line === '') throw new Error('expected a password on standard input; it is empty')
  if (/[\r\n]/.test(line)) throw new Error('expected one line on standard input, with the password alone')
  return line
}

/** What is left of a user's balance. */
function quotaOf(
  { quota, unlimited_quota }: Pick<UserObject, 'quota' | 'unlimited_quota'>,
  display: QuotaDisplay,
): string {
  return unlimited_quota ? 'unlimited' : quotaText(quota, display)
}
