import type { Command } from 'commander'
import type { MigrationReport } from '../transfer/migrate/migrate.ts'
import type { AccountSums } from '../transfer/migrate/quota-sums.ts'
import { JSON_OPTION } from './options.ts'
import { quotaText } from '../management/quota-text.ts'
import { plainText } from './plain-text.ts'
import { Progress } from './progress.ts'
import type { CommandContext } from './command-context.ts'
import { type Column, table } from './table.ts'
import { printJson, runReportingErrors } from './with-accounts.ts'

/** Maximum number of users, and of differences, that the output lists. */
const MAX_LISTED = 50

const HELP = `
Copies users, keys, channels, settings, sessions and the whole usage log of the embedded database in DATA_DIR, then compares every
row and every sum. No gateway may run on DATA_DIR meanwhile. The source is only read, except that calls which a crash left open
are settled first. Keys are copied as they are, encrypted: GATEWAY_SECRET stays the same.
The target must be empty, or an interrupted copy of this database, which is completed by running the
command again. If the URL names no password, PGPASSWORD is taken. docs/moving.md describes all steps.
Exits with 1 if anything differs.
Examples:
  sluice migrate --to postgres://sluice@db.example.com/sluice --dry-run
  sluice migrate --to postgres://sluice@db.example.com/sluice`

interface MigrateOptions {
  readonly to: string
  readonly dryRun?: boolean
  readonly json?: boolean
}

/** Adds `sluice migrate`, which copies a SQLite database to PostgreSQL. */
export function addMigrateCommand(program: Command, shell: CommandContext): void {
  program
    .command('migrate')
    .description('copy the embedded database to PostgreSQL, and compare')
    .requiredOption('--to <url>', 'postgres://user@host:port/database')
    .option('--dry-run', 'report what would be copied, and write nothing')
    .addOption(JSON_OPTION)
    .addHelpText('after', HELP)
    .action((options: MigrateOptions) => migrate(shell, options))
}

async function migrate(
  shell: CommandContext,
  { to, dryRun = false, json = false }: MigrateOptions,
): Promise<void> {
  await runReportingErrors(shell, async () => {
    const { readEnvironment } = await import('../config/environment.ts')
    const { migrate } = await import('../transfer/migrate/migrate.ts')
    const environment = readEnvironment(shell.env)
    const progress = new Progress(shell, 'rows', json)
    const migration = await migrate({
      environment,
      to,
      dryRun,
      onProgress: (done, total) => progress.show(done, total),
    }).finally(() => progress.end())
    if (json) printJson(shell, asJson(migration))
    else shell.out.write(report(migration, shell))
    if (migration.differences.length > 0) {
      shell.err.write(plainText(failureText(migration)))
      shell.exitCode = 1
    } else if (!json && !dryRun) shell.out.write(nextSteps(environment.secret, environment.dataDir))
  })
}

function report(migration: MigrationReport, { out }: CommandContext): string {
  const { to, dryRun, openCalls, before, tables, here, there, differences } = migration
  const amount = amountTextIn(migration)
  const rows = tables.map(({ table: name, here, there }) => ({
    what: `rows of ${name}`,
    here: String(here),
    there: String(there),
  }))
  const sums = Object.entries(here.totals).map(([what, sum]) => ({
    what,
    here: amount(sum),
    there: there ? amount(there.totals[what as keyof typeof here.totals]) : '',
  }))
  const users = here.users.slice(0, MAX_LISTED)
  const more = here.users.length - users.length
  const copied = tables.reduce((sum, { there }, index) => sum + there - (before[index]?.there ?? 0), 0)
  return [
    openCalls.count > 0 &&
      (dryRun
        ? `${openCalls.count} calls that an earlier run left open would be settled first.\n`
        : `Settled ${openCalls.count} calls that an earlier run left open: ${amount(openCalls.quota).replace(/(?= \(|$)/, ' quota units')}.\n`),
    table([...rows, ...sums], COLUMNS, out),
    '\n',
    table(users, userColumns(there?.users ?? [], amount), out),
    more > 0 && `and ${more} more users\n`,
    '\n',
    dryRun && `A dry run: nothing was written to ${to}.\n`,
    !dryRun &&
      differences.length === 0 &&
      `${copied} rows were written to ${to}. All rows are equal, and the sums of ${here.users.length} users and ` +
        `${here.tokens.length} tokens.\n`,
  ]
    .filter((part) => part !== false)
    .join('')
}

const COLUMNS: readonly Column<{ what: string; here: string; there: string }>[] = [
  { title: 'WHAT', cell: ({ what }) => what },
  { title: 'HERE', cell: ({ here }) => here, right: true },
  { title: 'THERE', cell: ({ there }) => there, right: true, warns: ({ here, there }) => here !== there },
]

type AmountText = (quota: number | string) => string

/** Formats quota units with their value in money, if the configuration says what they are worth. */
function amountTextIn({ display }: MigrationReport): AmountText {
  return (quota) =>
    display && Number.isSafeInteger(Number(quota)) ? quotaText(Number(quota), display) : String(quota)
}

function userColumns(there: readonly AccountSums[], amount: AmountText): readonly Column<AccountSums>[] {
  const others = new Map(there.map((one) => [one.id, one]))
  const both = (title: string, of: (sums: AccountSums) => number): Column<AccountSums>[] => [
    { title, cell: (one) => amount(of(one)), right: true },
    {
      title: 'THERE',
      cell: ({ id }) => {
        const other = others.get(id)
        return other ? amount(of(other)) : ''
      },
      right: true,
      warns: (one) => {
        const other = others.get(one.id)
        return !other || of(other) !== of(one)
      },
    },
  ]
  return [
    { title: 'USER', cell: ({ id }) => String(id), right: true },
    ...both('QUOTA', ({ remain }) => remain),
    ...both('USED', ({ used }) => used),
    ...both('LOGGED', ({ logged }) => logged),
    ...both('IN DAYS', ({ days }) => days),
  ]
}

function failureText({ to, differences }: MigrationReport): string {
  const listed = differences.slice(0, MAX_LISTED).map((sentence) => `  ${sentence}\n`)
  const more = differences.length - listed.length
  return (
    `sluice: the content of ${to} differs from the source:\n${listed.join('')}` +
    (more > 0 ? `  and ${more} more\n` : '') +
    'The source is unchanged; continue to use it. Find the program that writes to the target, and copy into an empty database.\n'
  )
}

function nextSteps(secret: string | undefined, dataDir: string): string {
  const secretLine =
    secret === undefined
      ? `  2. Set GATEWAY_SECRET, on every node, to the content of ${dataDir}/secret.\n`
      : '  2. Keep GATEWAY_SECRET as it is, the same on every node.\n'
  return (
    'Next steps:\n' +
    '  1. Set DATABASE_URL to that URL.\n' +
    secretLine +
    '  3. Start the gateway: "sluice start". Do not start it on the old database again: the two would diverge.\n'
  )
}

function asJson({
  to,
  dryRun,
  openCalls,
  before,
  tables,
  here,
  there,
  differences,
}: MigrationReport): unknown {
  return {
    to,
    dry_run: dryRun,
    open_calls: openCalls,
    before: before.map(({ table: name, there }) => ({ table: name, rows: there })),
    tables,
    sums: { here: here.totals, there: there?.totals ?? null },
    users: here.users,
    tokens: here.tokens,
    verified: !dryRun && differences.length === 0,
    differences,
  }
}
