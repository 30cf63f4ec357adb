import { type Command, Option } from 'commander'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { TokenObject } from '../management/tokens/token-object.ts'
import { type Amount, AMOUNT_FORM, parseAmount, quotaOfAmounts } from './amount.ts'
import { budgetText, isBudgetUsedUp, quotaText } from '../management/quota-text.ts'
import {
  addRecordOptions,
  BUDGET_OPTIONS,
  budgetFromOptions,
  type BudgetOptions,
  commaList,
  filledList,
  CONFIG_OPTION,
  parseExpiresOption,
  fieldsFromOptions,
  JSON_OPTION,
  wholeNumber,
} from './options.ts'
import { TOKEN } from '../domain/records/token.ts'
import { plainText } from './plain-text.ts'
import { timeText } from './time-text.ts'
import type { CommandContext } from './command-context.ts'
import { type Column, table } from './table.ts'
import {
  type AccountOptions,
  printJson,
  printResult,
  runReportingErrors,
  runWithAccounts,
} from './with-accounts.ts'

const STATUS = new Map([
  [1, 'enabled'],
  [2, 'disabled'],
  [3, 'expired'],
  [4, 'exhausted'],
])

const CREATE_HELP = `
The key is printed once, alone on standard output: KEY=$(sluice token create …) captures it alone.
It works at once. Its calls are charged to its own quota, if it has one, and to its user's.
Examples:
  sluice token create --user ann --name laptop --unlimited
  sluice token create --user ann --name trial --quota 1usd --expires 30d
  sluice token create --user ann --name ci --unlimited --models gpt-5.4-mini --allow-ips 10.0.0.0/8,192.0.2.7
  sluice token create --user ann --name both --unlimited --vendor-routes '{"anthropic": "vip"}'`

const LIST_HELP = `
Keys are masked. "sluice token disable" takes an id.
Examples:
  sluice token list --user ann
  sluice token list --last4 x7Qp
  sluice token list --group sales --status disabled`

const ROTATE_HELP = `
The old key is refused from the next call on, even if gateway.yaml declares it; quota, limits, expiry and the usage
log stay.
Example:
  KEY=$(sluice token rotate 7)`

const UPDATE_HELP = `
"sluice token list" shows the ids. A change counts from the next call on, and the holder of the key can only tighten what is
set so. A new budget keeps the period, and --budget 0 removes both; what is used of the period stays used. An empty text
removes models, addresses, guards, toolsets and the group.
Examples:
  sluice token update 7 --budget 1usd --per day
  sluice token update 7 --models gpt-5.4-mini --expires 30d
  sluice token update 7 --allow-ips ''`

const DELETE_HELP = `
Running calls go on and are charged; the usage log keeps the key's calls.`

/** The options of `token create`. */
interface CreateOptions extends AccountOptions, BudgetOptions {
  readonly user: string
  readonly name: string
  readonly quota?: Amount
  readonly unlimited?: boolean
  readonly expires: number
  readonly models?: readonly string[]
  readonly allowIps?: readonly string[]
}

interface ListOptions extends AccountOptions {
  readonly user?: string
  readonly name?: string
  readonly last4?: string
  readonly group?: string
  readonly status?: string
  readonly page?: number
}

/** The options of `token update`. */
interface UpdateOptions extends AccountOptions, BudgetOptions {
  readonly name?: string
  readonly quota?: Amount
  readonly unlimited?: boolean
  readonly expires?: number
  readonly models?: readonly string[]
  readonly allowIps?: readonly string[]
  readonly guards?: readonly string[]
  readonly toolsets?: readonly string[]
  readonly group?: string
}

const PAGE_SIZE = 100

/** Adds the commands `sluice token …`, which manage API keys. */
export function addTokenCommands(program: Command, shell: CommandContext): void {
  const token = program.command('token').description('manage API keys')

  const creating = token
    .command('create')
    .description('create an API key, and print it once')
    .requiredOption('--user <name>', 'the user of the key')
    .requiredOption('--name <name>', 'a name of at most 50 characters')
    .addOption(
      new Option('--quota <amount>', `the quota of the key: ${AMOUNT_FORM}`)
        .argParser(parseAmount)
        .conflicts('unlimited'),
    )
    .option('--unlimited', "limit the key by its user's quota alone")
    .addOption(BUDGET_OPTIONS[0])
    .addOption(BUDGET_OPTIONS[1])
    .addOption(
      new Option('--expires <time>', 'never, 30d, 12h, 2027-01-31, or a Unix time in seconds')
        .argParser(parseExpiresOption)
        .default(-1, 'never'),
    )
    .option('--models <names>', 'the models that the key may use, separated by commas', filledList)
    .option('--allow-ips <ranges>', 'the addresses that may use the key, separated by commas', filledList)
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', CREATE_HELP)
    .action((options: CreateOptions, command: Command) => {
      if (options.quota === undefined && !options.unlimited) {
        command.error('error: expected the quota of the key: --quota <amount> or --unlimited')
      }
      return create(shell, options, budgetFromOptions(options, command))
    })

  addRecordOptions(creating, TOKEN.fields)

  token
    .command('list')
    .description('keys, masked, with quota, use, budget and expiry: those of a user, or of all users')
    .option('--user <name>', 'whose keys, all of them')
    .addOption(new Option('--name <text>', 'a part of the name of the key').conflicts('user'))
    .addOption(new Option('--last4 <end>', 'the last four characters of the key').conflicts('user'))
    .addOption(new Option('--group <name>', 'the group that its calls use').conflicts('user'))
    .addOption(new Option('--status <status>').choices([...STATUS.values()]).conflicts('user'))
    .addOption(
      new Option('--page <number>', `the page of ${PAGE_SIZE} keys, the newest first`)
        .argParser(wholeNumber)
        .conflicts('user'),
    )
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', LIST_HELP)
    .action((options: ListOptions) => list(shell, options))

  token
    .command('update <id>')
    .description("change a key's name and limits")
    .option('--name <name>', 'a name of at most 50 characters')
    .addOption(
      new Option('--quota <amount>', `what the key may still spend: ${AMOUNT_FORM}`)
        .argParser(parseAmount)
        .conflicts('unlimited'),
    )
    .option('--unlimited', "limit the key by its user's quota alone")
    .addOption(BUDGET_OPTIONS[0])
    .addOption(BUDGET_OPTIONS[1])
    .addOption(
      new Option('--expires <time>', 'never, 30d, 12h, 2027-01-31, or a Unix time in seconds').argParser(
        parseExpiresOption,
      ),
    )
    .option('--models <names>', 'the models that the key may use, separated by commas', commaList)
    .option('--allow-ips <ranges>', 'the addresses that may use the key, separated by commas', commaList)
    .option('--guards <names>', 'guards that check its calls, separated by commas', commaList)
    .option('--toolsets <names>', 'MCP toolsets to which it is restricted, separated by commas', commaList)
    .option('--group <name>', 'the group that its calls use')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', UPDATE_HELP)
    .action((id: string, options: UpdateOptions, command: Command) => {
      const fields = changedFields(options)
      const { budget, per } = options
      if (Object.keys(fields).length === 0 && !options.quota && budget === undefined && per === undefined)
        return command.error('error: expected what to change: see --help')
      return runReportingErrors(shell, () => update(shell, tokenId(id), fields, options))
    })

  const onOne = (
    name: string,
    description: string,
    help: string,
    work: (shell: CommandContext, id: number, options: AccountOptions) => Promise<void>,
  ): void => {
    token
      .command(`${name} <id>`)
      .description(description)
      .addOption(JSON_OPTION)
      .addOption(CONFIG_OPTION)
      .addHelpText('after', `\n"sluice token list" shows the ids.${help}`)
      .action((id: string, options: AccountOptions) =>
        runReportingErrors(shell, () => work(shell, tokenId(id), options)),
      )
  }
  onOne('disable', 'refuse a key, from the next call on', '', onKey('disableToken', 'is refused from now on'))
  onOne('enable', 'accept a disabled key again', '', onKey('enableToken', 'is accepted again'))
  onOne('rotate', 'replace a key by a new one, and print it once', ROTATE_HELP, rotate)
  onOne(
    'delete',
    'delete a key, which is refused from the next call on',
    DELETE_HELP,
    onKey('deleteToken', 'is deleted'),
  )
}

async function create(
  shell: CommandContext,
  options: CreateOptions,
  { budget, ...period }: ReturnType<typeof budgetFromOptions>,
): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const { user, name, models = [] } = options
    const given = quotaOfAmounts(shell, await accounts.display(), { quota: options.quota, budget })
    const warnings = await accounts.run('tokenWarnings', { user, name, models: [...models] })
    const made = await accounts.run('createToken', {
      user: options.user,
      name: options.name,
      expired_time: options.expires,
      remain_quota: given.quota ?? 0,
      unlimited_quota: options.unlimited ?? false,
      model_limits_enabled: options.models !== undefined,
      model_limits: options.models?.join(',') ?? '',
      allow_ips: options.allowIps?.join('\n') ?? null,
      ...fieldsFromOptions(TOKEN.fields, options),
      ...period,
      ...(given.budget !== undefined && { budget: given.budget }),
    })
    for (const warning of warnings) shell.err.write(plainText(`Warning: ${warning}.\n`))
    if (options.json) printJson(shell, made)
    else {
      const limit = quotaOf(made, await accounts.display())
      const message = `The key "${made.name}" of ${options.user} (id ${made.id}; quota: ${limit}; ${expiryText(made)}), printed once:\n`
      shell.err.write(plainText(message))
      shell.out.write(`${made.key}\n`)
    }
  })
}

function list(shell: CommandContext, { user, ...options }: ListOptions): Promise<void> {
  if (user !== undefined)
    return printResult(shell, options, 'listTokens', { user }, (tokens, display) =>
      table(tokens, tokenColumns(display), shell.out),
    )
  const { name, last4, group, page = 1, ...others } = options
  const status = [...STATUS].find(([, text]) => text === options.status)?.[0].toString()
  const search = { keyword: name, last4, group, status, p: String(page), page_size: String(PAGE_SIZE) }
  return printResult(shell, others, 'listAllTokens', search, ({ items, total }, display) => {
    const [id, ...columns] = tokenColumns(display)
    const owner: Column<(typeof items)[number]> = { title: 'USER', cell: ({ username }) => username }
    const shown = table(items, [id as Column<TokenObject>, owner, ...columns], shell.out)
    const isMore = total > page * PAGE_SIZE
    return isMore ? `${shown}${total} keys; --page ${page + 1} shows the next ones.\n` : shown
  })
}

/** The fields that the options name, without amounts. */
function changedFields({
  name,
  unlimited,
  expires,
  models,
  allowIps,
  guards,
  toolsets,
  group,
}: UpdateOptions) {
  return {
    ...(name !== undefined && { name }),
    ...(unlimited && { unlimited_quota: true }),
    ...(expires !== undefined && { expired_time: expires }),
    ...(models && { model_limits_enabled: models.length > 0, model_limits: models.join(',') }),
    ...(allowIps && { allow_ips: allowIps.length > 0 ? allowIps.join('\n') : null }),
    ...(guards && { guards: [...guards] }),
    ...(toolsets && { toolsets: [...toolsets] }),
    ...(group !== undefined && { group }),
  }
}

function update(
  shell: CommandContext,
  id: number,
  fields: ReturnType<typeof changedFields>,
  options: UpdateOptions,
): Promise<void> {
  return printResult(
    shell,
    options,
    'changeToken',
    (display) => {
      const { quota, budget } = quotaOfAmounts(shell, display, {
        quota: options.quota,
        budget: options.budget,
      })
      return {
        id,
        ...fields,
        ...(quota !== undefined && { remain_quota: quota, unlimited_quota: false }),
        ...(budget !== undefined && { budget }),
        ...(options.per && { budget_period: options.per }),
      }
    },
    (changed, display) => table([changed], tokenColumns(display), shell.out),
  )
}

/** Returns a command that runs an operation on one key, and prints its effect. */
function onKey(operation: 'disableToken' | 'enableToken' | 'deleteToken', effect: string) {
  return (shell: CommandContext, id: number, options: AccountOptions): Promise<void> =>
    printResult(shell, options, operation, { id }, ({ name }) =>
      plainText(`The key "${name}" (id ${id}) ${effect}.\n`),
    )
}

async function rotate(shell: CommandContext, id: number, options: AccountOptions): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const changed = await accounts.run('rotateToken', { id })
    if (options.json) printJson(shell, changed)
    else {
      shell.err.write(plainText(`The new key "${changed.name}" (id ${changed.id}), printed once:\n`))
      shell.out.write(`${changed.key}\n`)
    }
  })
}

function tokenId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new Error(`expected the id of a token, not "${text}": token list shows it`)
}

/** The columns of a table of API keys. */
export function tokenColumns(display: QuotaDisplay): readonly Column<TokenObject>[] {
  return [
    { title: 'ID', cell: ({ id }) => String(id), right: true },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'KEY', cell: ({ key }) => key },
    {
      title: 'STATUS',
      cell: ({ status }) => STATUS.get(status) ?? String(status),
      warns: ({ status }) => status !== 1,
    },
    { title: 'GROUP', cell: ({ group }) => group || '-' },
    { title: 'QUOTA', cell: (token) => quotaOf(token, display), right: true },
    { title: 'USED', cell: ({ used_quota }) => quotaText(used_quota, display), right: true },
    { title: 'BUDGET', cell: (token) => budgetText(token, display), warns: isBudgetUsedUp },
    { title: 'EXPIRES', cell: ({ expired_time }) => timeText(expired_time) },
    {
      title: 'LAST USED',
      cell: ({ accessed_time }) => (accessed_time === 0 ? '-' : timeText(accessed_time)),
    },
  ]
}

function quotaOf({ unlimited_quota, remain_quota }: TokenObject, display: QuotaDisplay): string {
  return unlimited_quota ? 'unlimited' : quotaText(remain_quota, display)
}

// `--expires 30` means Unix second 30, though 30 days were probably meant. The message therefore says if the
// key has already expired.
function expiryText({ expired_time, status }: TokenObject): string {
  return status === 3 ? `expired since ${timeText(expired_time)}` : `expires: ${timeText(expired_time)}`
}
