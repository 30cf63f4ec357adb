import { type Command, Option } from 'commander'
import { decimalText, ONE } from '../domain/decimal.ts'
import { displayAmount } from '../domain/display-amount.ts'
import { USAGE_DIMENSIONS, type UsageDimension } from '../domain/usage-filter.ts'
import { csvLine } from '../management/csv.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { UsageLine } from '../management/usage/sum-usage.ts'
import { CONFIG_OPTION, JSON_OPTION } from './options.ts'
import { quotaText } from '../management/quota-text.ts'
import type { CommandContext } from './command-context.ts'
import { type Column, table } from './table.ts'
import { type AccountOptions, printJson, runWithAccounts } from './with-accounts.ts'

const HELP = `
Days are calendar days in UTC, both included; the last 30 days unless --from is given. The sums are what was charged.
Examples:
  sluice usage
  sluice usage --by user --from 2026-11-01 --to 2026-11-30
  sluice usage --by key --json | jq 'map(.quota) | add'
  sluice usage --by user --csv > november.csv           # with cost_usd`

interface UsageOptions extends AccountOptions {
  readonly by: UsageDimension
  readonly from?: string
  readonly to?: string
  readonly csv?: boolean
}

/** Adds `sluice usage`, which prints sums of the usage log. */
export function addUsageCommand(program: Command, shell: CommandContext): void {
  program
    .command('usage')
    .description('calls, tokens and charges by model, user, key, channel or day')
    .addOption(
      new Option('--by <dimension>', 'what the sums are by').choices(USAGE_DIMENSIONS).default('model'),
    )
    .option('--from <day>', 'the first day, such as 2026-11-01')
    .option('--to <day>', 'the last day; today by default')
    .addOption(JSON_OPTION)
    .addOption(new Option('--csv', 'print CSV, with the charge in dollars').conflicts('json'))
    .addOption(CONFIG_OPTION)
    .addHelpText('after', HELP)
    .action((options: UsageOptions) => usage(shell, options))
}

async function usage(shell: CommandContext, { by, from, to, csv, ...options }: UsageOptions): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const lines = await accounts.run('usageByDimension', { by, from, to })
    if (options.json) printJson(shell, lines)
    else if (csv) shell.out.write(csvOf(lines, by, await accounts.display()))
    else if (lines.length === 0) shell.err.write('No calls were charged in this period.\n')
    else shell.out.write(table(lines, columns(by, await accounts.display()), shell.out))
  })
}

const CSV_COLUMNS = ['id', 'requests', 'prompt_tokens', 'completion_tokens', 'quota'] as const

function csvOf(lines: readonly UsageLine[], by: UsageDimension, { quota_per_unit }: QuotaDisplay): string {
  const unit = { display: 'USD', quota_per_unit, usd_exchange_rate: ONE } as const
  return [
    csvLine([by, ...CSV_COLUMNS, 'cost_usd']),
    ...lines.map((line) =>
      csvLine([
        line.name,
        ...CSV_COLUMNS.map((column) => line[column]),
        decimalText(displayAmount(line.quota, unit)),
      ]),
    ),
  ].join('')
}

function columns(by: UsageDimension, display: QuotaDisplay): readonly Column<UsageLine>[] {
  const hasId = by === 'user' || by === 'key'
  return [
    ...(hasId ? [{ title: 'ID', cell: ({ id }: UsageLine) => String(id), right: true }] : []),
    { title: by.toUpperCase(), cell: ({ name }) => name },
    { title: 'CALLS', cell: ({ requests }) => String(requests), right: true },
    { title: 'PROMPT TOKENS', cell: ({ prompt_tokens }) => String(prompt_tokens), right: true },
    { title: 'OUTPUT TOKENS', cell: ({ completion_tokens }) => String(completion_tokens), right: true },
    { title: 'CHARGED', cell: ({ quota }) => quotaText(quota, display), right: true },
  ]
}
