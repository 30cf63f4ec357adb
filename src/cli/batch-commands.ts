import type { Command } from 'commander'
import type { OperationOutput } from '../management/operations.ts'
import { quotaUnitsText } from '../management/quota-text.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { CommandContext } from './command-context.ts'
import { CONFIG_OPTION, JSON_OPTION, wholeNumber } from './options.ts'
import { type Column, details, table } from './table.ts'
import { type AccountOptions, printResult } from './with-accounts.ts'
import { timeText } from './time-text.ts'

type Listed = OperationOutput<'listAllBatches'>[number]
type Shown = OperationOutput<'showAnyBatch'>

const LIST_HELP = `
The newest batches of all users. DONE are lines that have ended, of all lines; COST is that of the lines so far, and SAVED
what they cost less than at the full price.
Examples:
  sluice batch list
  sluice batch list --user ann --json
The calls that were made for the lines of a batch: GET /api/log/?batch=ID`

const SHOW_HELP = `
A batch with its first 100 failed lines, and why they failed.
Example:
  sluice batch show batch_01…`

const CANCEL_HELP = `
Nothing more of the batch is sent. Lines that have ended are kept and charged; what is held for the others is released.
Without a running gateway, the batch is cancelled at its next start.
Example:
  sluice batch cancel batch_01…`

/** Adds the commands `sluice batch …`. */
export function addBatchCommands(program: Command, shell: CommandContext): void {
  const batch = program.command('batch').description('list, show and cancel batches of users')
  const adding = (name: string, description: string, help: string): Command =>
    batch
      .command(name)
      .description(description)
      .addOption(JSON_OPTION)
      .addOption(CONFIG_OPTION)
      .addHelpText('after', help)
  adding('list', 'batches with their progress and cost, the newest first', LIST_HELP)
    .option('--user <name>', 'only batches of this user')
    .option('--limit <number>', 'maximum number of batches, up to 1000', wholeNumber, 100)
    .action(({ user, limit, ...options }: AccountOptions & { user?: string; limit: number }) =>
      printResult(
        shell,
        options,
        'listAllBatches',
        { limit, ...(user !== undefined && { username: user }) },
        (batches, display) => table(batches, columns(display), shell.out),
      ),
    )
  adding('show <id>', 'a batch, with the lines that have failed', SHOW_HELP).action(
    (id: string, options: AccountOptions) =>
      printResult(shell, options, 'showAnyBatch', { id }, (shown, display) =>
        batchText(shown, display, shell),
      ),
  )
  adding('cancel <id>', 'send nothing more of a batch', CANCEL_HELP).action(
    (id: string, options: AccountOptions) =>
      printResult(shell, options, 'cancelAnyBatch', { id }, (shown, display) =>
        batchText(shown, display, shell),
      ),
  )
}

function columns(display: QuotaDisplay): readonly Column<Listed>[] {
  return [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'USER', cell: ({ username }) => username },
    { title: 'STATUS', cell: ({ status }) => status },
    { title: 'MODEL', cell: ({ model }) => model ?? 'several' },
    { title: 'DONE', cell: (one) => `${doneOf(one)} of ${one.total}`, right: true },
    { title: 'FAILED', cell: ({ failed }) => String(failed), right: true, warns: ({ failed }) => failed > 0 },
    { title: 'COST', cell: ({ quota }) => quotaUnitsText(quota, display), right: true },
    { title: 'SAVED', cell: ({ saved }) => quotaUnitsText(saved, display), right: true },
    { title: 'CREATED', cell: ({ created_at: at }) => timeText(at) },
  ]
}

function batchText(shown: Shown, display: QuotaDisplay, { out }: CommandContext): string {
  const { failed, expired, cancelled, ended_at: endedAt, errors } = shown
  const text = details([
    ['id', shown.id],
    ['user', shown.username],
    ['key', shown.token_name],
    ['endpoint', shown.endpoint],
    ['model', shown.model ?? 'several'],
    ['status', shown.status],
    ['done', `${doneOf(shown)} of ${shown.total} lines`],
    ['failed', String(failed)],
    ['not made', String(expired + cancelled)],
    ['cost', quotaUnitsText(shown.quota, display)],
    ['saved', quotaUnitsText(shown.saved, display)],
    ['held', quotaUnitsText(shown.held, display)],
    ['created', timeText(shown.created_at)],
    ['ended', endedAt === null ? 'no' : timeText(endedAt)],
  ])
  return errors.length === 0 ? text : `${text}\n${table(errors, ERRORS, out)}`
}

const ERRORS: readonly Column<Shown['errors'][number]>[] = [
  { title: 'CUSTOM ID', cell: ({ custom_id: id }) => id },
  { title: 'HTTP', cell: ({ status }) => (status === null ? '' : String(status)), right: true },
  { title: 'CODE', cell: ({ code }) => code },
  { title: 'MESSAGE', cell: ({ message }) => message },
]

function doneOf({ completed, failed, expired, cancelled }: Listed): number {
  return completed + failed + expired + cancelled
}
