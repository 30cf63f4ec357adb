import type { Command } from 'commander'
import type { Json } from '../domain/json.ts'
import type { AppliedPrice } from '../management/models/list-prices.ts'
import { CONFIG_OPTION, JSON_OPTION } from './options.ts'
import type { CommandContext } from './command-context.ts'
import { type Column, table } from './table.ts'
import { type AccountOptions, printJson, runReportingErrors } from './with-accounts.ts'

const HELP = `
The price of each model that a channel serves, in USD per million tokens, and where it is stated. The first of these applies:
  gateway.yaml    models.NAME.price
  set over HTTP   PUT /api/models/price, or the page Models of the console
  prices file     the file of options.prices_file
  built in        the data that come with this version, with their day
  as NAME         the price of the model to which all channels of an alias map it
A model without a price is refused, unless options.unpriced_models is "free".

With --outdated: declared prices that differ from the built-in data, with both, and entries of the built-in data (prices, tiers
of service, tools, ends of models) that apply and are older than 90 days, with their source. A difference may be wanted: your contract, or a price that changed since this version. Update the others, or remove them.
Examples:
  sluice prices
  sluice prices --outdated
  sluice prices --json | jq -r '.[] | select(.source == "none").model'`

interface PricesOptions extends AccountOptions {
  readonly outdated?: boolean
}

const SOURCES: Readonly<Record<Exclude<AppliedPrice['source'], 'alias'>, string>> = {
  file: 'gateway.yaml',
  set: 'set over HTTP',
  prices_file: 'prices file',
  'built-in': 'built in',
  none: 'no price',
}

/** Adds the commands `sluice prices …`. */
export function addPricesCommand(program: Command, shell: CommandContext): void {
  program
    .command('prices')
    .description('the price of each served model, and where it is stated')
    .option('--outdated', 'only prices that differ from the built-in data, and data older than 90 days')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', HELP)
    .action((options: PricesOptions) => prices(shell, options))
}

async function prices(shell: CommandContext, options: PricesOptions): Promise<void> {
  await runReportingErrors(shell, async () => {
    const rows = await read(shell, options)
    if (options.json) return printJson(shell, rows)
    if (rows.length === 0) {
      const nothing = options.outdated ? 'No price is outdated.' : 'No channel serves a model.'
      return void shell.err.write(`${nothing}\n`)
    }
    shell.out.write(table(rows, options.outdated ? OUTDATED : COLUMNS, shell.out))
    if (!options.outdated) shell.err.write('Prices of tokens are in USD per million.\n')
    const unpriced = rows.filter(({ source }) => source === 'none').length
    if (unpriced > 0) shell.err.write(`${unpriced} of ${rows.length} models without a price.\n`)
  })
}

/**
 * Reads the prices from the gateway or its database; if there is no database yet, from the configuration
 * files.
 */
async function read(
  shell: CommandContext,
  { outdated = false, config }: PricesOptions,
): Promise<AppliedPrice[]> {
  const { readEnvironment } = await import('../config/environment.ts')
  const { NoDatabase } = await import('../gateway/control/command-backend.ts')
  const { openCommandBackend } = await import('../gateway/control/open-command-backend.ts')
  const environment = readEnvironment(shell.env, { config })
  try {
    const accounts = await openCommandBackend(environment)
    try {
      return await accounts.run('listPrices', { outdated })
    } finally {
      await accounts.close()
    }
  } catch (error) {
    if (!(error instanceof NoDatabase)) throw error
    const { pricesOfFiles } = await import('../gateway/control/prices-of-files.ts')
    return pricesOfFiles(environment, outdated)
  }
}

const amount = (kind: string): Omit<Column<AppliedPrice>, 'title'> => ({
  cell: ({ price }) => (typeof price?.[kind] === 'string' ? price[kind] : ''),
  right: true,
})

const NAMED: readonly Column<AppliedPrice>[] = [
  { title: 'MODEL', cell: ({ model }) => model },
  {
    title: 'FROM',
    cell: ({ source, priced_as: other, data_date: date }) => {
      if (source === 'alias') return `as ${other}`
      return date === null ? SOURCES[source] : `${SOURCES[source]}, ${date}`
    },
    warns: ({ source }) => source === 'none',
  },
]

const COLUMNS: readonly Column<AppliedPrice>[] = [
  ...NAMED,
  { title: 'INPUT', ...amount('input') },
  { title: 'CACHE READ', ...amount('cache_read') },
  { title: 'CACHE WRITE', ...amount('cache_write_5m') },
  { title: 'OUTPUT', ...amount('output') },
  { title: 'OTHER', cell: otherPrices },
]

const OUTDATED: readonly Column<AppliedPrice>[] = [
  ...NAMED,
  {
    title: 'DECLARED, BUILT IN',
    cell: ({ differences }) =>
      differences.length === 0
        ? ''
        : differences
            .map(({ kind, declared, built_in: builtIn }) => `${kind} ${declared || '–'}, ${builtIn || '–'}`)
            .join('; '),
    warns: () => true,
  },
  {
    title: 'OLDER THAN 90 DAYS',
    cell: ({ sources }) =>
      sources
        .filter(({ old }) => old)
        .map(({ of, source, date }) => `${of}: ${source}, ${date}`)
        .join('; '),
  },
]

/** Kinds of prices without a column of their own, which are printed with their amounts in the last column. */
const OTHERS = ['request', 'characters', 'second', 'search_unit'] as const

function otherPrices({ price, tiers, ends }: AppliedPrice): string {
  if (price === null) return ''
  const stated = OTHERS.filter((kind) => price[kind] !== '0').map((kind) => `${kind} ${textOf(price[kind])}`)
  const images = 'image' in price ? ['images'] : []
  const above = tiers.map(
    (tier) => `above ${textOf(tier['above'])}: ${textOf(tier['input'])}/${textOf(tier['output'])}`,
  )
  return [...stated, ...images, ...above, ...(ends === null ? [] : [`ends on ${ends}`])].join(', ')
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
