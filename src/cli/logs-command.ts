import type { Command } from 'commander'
import { STATUS_WORDS } from '../domain/call-outcome.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { OperationOutput } from '../management/operations.ts'
import type { CommandContext } from './command-context.ts'
import { CONFIG_OPTION, JSON_OPTION, wholeNumber } from './options.ts'
import { quotaText } from '../management/quota-text.ts'
import { type Column, details, table } from './table.ts'
import { timeText } from './time-text.ts'
import { type AccountOptions, printJson, printResult, runWithAccounts } from './with-accounts.ts'

const HELP = `
Lists the newest calls, or with the id of a call (the x-request-id of its answer) explains that one: channels that were tried,
the error and the charge. Refused calls, which never reached a channel, are listed by --refused.
Examples:
  sluice logs --user ann --failed
  sluice logs --refused
  sluice logs 01935c3e-8a4b-7c11-9d2e-5f60718293a4`

interface LogsOptions extends AccountOptions {
  readonly user?: string
  readonly key?: string
  readonly model?: string
  readonly channel?: string
  readonly failed?: boolean
  readonly refused?: boolean
  readonly limit: number
}

type Call = OperationOutput<'listCalls'>[number]
type Refusal = OperationOutput<'listRefusals'>[number]
type CallDetails = OperationOutput<'showCall'>

/** Adds `sluice logs`, which lists calls and explains one. */
export function addLogsCommand(program: Command, shell: CommandContext): void {
  program
    .command('logs [id]')
    .description('the newest calls, or one call with its attempts, error and charge')
    .option('--user <name>', 'calls of one user')
    .option('--key <name>', 'calls with an API key of this name')
    .option('--model <name>', 'calls of one model')
    .option('--channel <name>', 'calls that one channel answered')
    .option('--failed', 'calls that failed or were cut short')
    .option('--refused', 'refused calls of the last 72 hours')
    .option('--limit <number>', 'how many, at most 1000', wholeNumber, 20)
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', HELP)
    .action((id: string | undefined, options: LogsOptions) => logs(shell, id, options))
}

async function logs(
  shell: CommandContext,
  id: string | undefined,
  { config, json, refused, ...filter }: LogsOptions,
): Promise<void> {
  const options = { ...(config !== undefined && { config }), ...(json !== undefined && { json }) }
  if (id !== undefined)
    return printResult(shell, options, 'showCall', { id }, (call, display) => callText(call, display))
  await runWithAccounts(shell, options, async (accounts) => {
    const display = await accounts.display()
    const [rows, text] = refused
      ? await accounts
          .run('listRefusals', filter)
          .then((found) => [found, () => table(found, REFUSAL_COLUMNS, shell.out)] as const)
      : await accounts
          .run('listCalls', filter)
          .then((found) => [found, () => table(found, callColumns(display), shell.out)] as const)
    if (json) printJson(shell, rows)
    else if (rows.length === 0) shell.err.write(emptyText(refused === true, Object.keys(filter)))
    else shell.out.write(text())
  })
}

/** What an empty list leaves out; `filters` are the options that were given, `limit` always. */
function emptyText(refused: boolean, filters: readonly string[]): string {
  const which = filters.length > 1 ? 'There is no such call' : 'There is no call yet'
  return refused
    ? `${which} that was refused in the last 72 hours.\n`
    : `${which} that reached a channel; --refused lists refused calls.\n`
}

/** The columns of calls that reached a channel, in the order of a reader's questions. */
function callColumns(display: QuotaDisplay): readonly Column<Call>[] {
  return [
    { title: 'TIME', cell: ({ created_at }) => timeText(created_at) },
    { title: 'USER', cell: ({ username }) => username },
    { title: 'KEY', cell: ({ token_name }) => token_name },
    { title: 'MODEL', cell: ({ model_name }) => model_name },
    { title: 'CHANNEL', cell: ({ channel }) => channel || '-' },
    {
      title: 'STATUS',
      cell: ({ reason, cause }) => [STATUS_WORDS[reason], cause].filter(Boolean).join(': '),
      warns: ({ cause }) => cause !== '',
    },
    { title: 'TOKENS', cell: tokensText, right: true },
    { title: 'CHARGED', cell: ({ quota }) => quotaText(quota, display), right: true },
    { title: 'ID', cell: ({ id }) => id },
  ]
}

const REFUSAL_COLUMNS: readonly Column<Refusal>[] = [
  { title: 'TIME', cell: ({ created_at }) => timeText(created_at) },
  { title: 'USER', cell: ({ username }) => username || '-' },
  { title: 'KEY', cell: ({ token_name }) => token_name || '-' },
  { title: 'MODEL', cell: ({ model_name }) => model_name || '-' },
  { title: 'STATUS', cell: ({ status }) => String(status), right: true },
  { title: 'CODE', cell: ({ code }) => code },
  { title: 'MESSAGE', cell: ({ message }) => message },
  { title: 'ID', cell: ({ id }) => id },
]

function callText(call: CallDetails, display: QuotaDisplay): string {
  const caller = `${call.username || 'unknown'}, key "${call.token_name}"`
  const begin = [
    ['id', call.id],
    ['time', timeText(call.created_at)],
    ['user', caller],
    ['model', call.model_name],
  ] as const
  const error = call.error
    ? ([
        ['error', [call.error.status, call.error.code || call.error.cause].filter(Boolean).join(' ')],
        ['message', call.error.message || '(not kept: options.error_details)'],
      ] as const)
    : []
  if (!('timing' in call)) return details([...begin, ['status', 'Refused, not charged'], ...error])
  const { reason, timing, attempts, quota } = call
  return details([
    ...begin,
    ['channel', call.channel || 'none'],
    ['status', STATUS_WORDS[reason]],
    ...error,
    ['tokens', tokensText(call)],
    ['charged', quotaText(quota, display)],
    ...(call.cost ?? []).map(
      ({ kind, count, price_usd }) => [`  ${kind}`, `${count} at $${price_usd}`] as const,
    ),
    ['seconds', String(timing.total_ms / 1000)],
    ...attempts.map(
      ({ channel, cause, message, duration_ms }, index) =>
        [
          `attempt ${index + 1}`,
          [`${channel}:`, cause ?? 'answered', message, `after ${duration_ms / 1000} s`]
            .filter(Boolean)
            .join(' '),
        ] as const,
    ),
  ])
}

function tokensText({
  prompt_tokens,
  completion_tokens,
}: Pick<Call, 'prompt_tokens' | 'completion_tokens'>): string {
  return `${prompt_tokens} in, ${completion_tokens} out`
}
