import { type Command, Option } from 'commander'
import type { ImportReport } from '../transfer/import.ts'
import {
  compareLines,
  countLines,
  IMPORT_KINDS,
  type ImportKind,
  type ImportOutcome,
  type ReportLine,
} from '../domain/import-line.ts'
import { escapeForTerminal } from '../transfer/report.ts'
import { CONFIG_OPTION, JSON_OPTION } from './options.ts'
import { plainText } from './plain-text.ts'
import { Progress } from './progress.ts'
import type { CommandContext } from './command-context.ts'
import { type Column, table } from './table.ts'
import { type AccountOptions, printJson, runReportingErrors } from './with-accounts.ts'

const HELP = `
SOURCE is the SQLite file of a one-api or new-api, or postgres://user@host/database, or mysql://user@host/database, also as
in SQL_DSN; or the config.yaml of a LiteLLM proxy, with --database also its users, teams and keys (write litellm in place of
the file if there is none). It is only read; the other gateway may run.
Users, keys, channels, groups, prices and a few options carry over into the database of DATA_DIR or DATABASE_URL: keys go on
working, ids stay if they are free. Without --apply nothing is written: the report lists, row by row, what would not carry
over, and what would be changed. Read it, then run the command again with --apply.
Existing entries (a user or a channel of the same name, the same key, a group, a price) stay unchanged, so that the command
can be repeated. Keys are added to an existing user, or to a group that is not as their team, and roles above a common user's
carry over, only for the names that --merge and --role state: the author of that database chose its names and roles.
docs/moving.md describes all steps.
Exits with 1 if a planned entry could not be written.
Examples:
  sluice import /srv/new-api/one-api.db
  sluice import postgres://reader@db.example.com/newapi --apply
  sluice import one-api.db --role root --merge ann --apply
  sluice import "$SQL_DSN"
  sluice import litellm/config.yaml --database postgres://reader@db.example.com/litellm --apply`

const ORIGIN = {
  'one-api': 'a database of one-api',
  'new-api': 'a database of new-api',
  litellm: 'LiteLLM',
} as const

const OUTCOMES: Readonly<Record<ImportOutcome, string>> = {
  carried: 'carries over',
  changed: 'carries over',
  there: 'exists already',
  left: 'does not carry over',
}

interface ImportOptions extends AccountOptions {
  readonly apply?: boolean
  readonly merge?: readonly string[]
  readonly role?: readonly string[]
  readonly insecure?: boolean
  readonly database?: string
}

/** Adds `sluice import`, which imports users, keys and channels from another gateway. */
export function addImportCommand(program: Command, shell: CommandContext): void {
  program
    .command('import <source>')
    .description('import users, keys, channels and prices from a one-api, new-api or LiteLLM')
    .option('--apply', 'write; without it, only report what would be written')
    .addOption(new Option('--dry-run', 'write nothing (the default)').conflicts('apply'))
    .option(
      '--merge <name>',
      'add the keys of this user or team to the user or group here of the same name; may be repeated',
      collected,
    )
    .option(
      '--insecure',
      'send the password in clear if the server asks for it over an unencrypted connection',
    )
    .option('--role <name>', 'keep the role of this user; may be repeated', collected)
    .option('--database <url>', 'also import users, teams and keys of LiteLLM, from its database')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', HELP)
    .action((source: string, options: ImportOptions) => importFrom(shell, source, options))
}

async function importFrom(
  shell: CommandContext,
  source: string,
  { apply = false, json = false, merge = [], role = [], insecure, database, ...options }: ImportOptions,
): Promise<void> {
  await runReportingErrors(shell, async () => {
    const { readConfig } = await import('../config/config.ts')
    const { readEnvironment } = await import('../config/environment.ts')
    const { importOtherGateway } = await import('../transfer/import.ts')
    const progress = new Progress(shell, 'users', json)
    const report = await importOtherGateway({
      config: readConfig(readEnvironment(shell.env, options)),
      source,
      stated: { merge: new Set(merge), role: new Set(role) },
      insecure,
      database,
      apply,
      onProgress: (done, total) => progress.show(done, total),
    }).finally(() => progress.end())
    if (json) printJson(shell, asJson(report))
    else shell.out.write(reportText(report, shell))
    if (report.failed > 0) {
      shell.err.write(`sluice: ${report.failed} users could not be written; the report says why\n`)
      shell.exitCode = 1
    }
  })
}

function collected(name: string, names: readonly string[] = []): readonly string[] {
  return [...names, name]
}

interface Count {
  readonly kind: ImportKind
  readonly of: Readonly<Record<ImportOutcome, number>>
}

function rowsOf(lines: readonly ReportLine[]): Count[] {
  const counts = countLines(lines)
  return IMPORT_KINDS.map((kind) => ({ kind, of: counts[kind] }))
}

const COLUMNS: readonly Column<Count>[] = [
  { title: '', cell: ({ kind }) => `${kind}s` },
  { title: 'CARRY OVER', cell: ({ of }) => String(of.carried + of.changed), right: true },
  { title: 'CHANGED', cell: ({ of }) => String(of.changed), right: true },
  { title: 'THERE ALREADY', cell: ({ of }) => String(of.there), right: true },
  {
    title: 'DO NOT CARRY OVER',
    cell: ({ of }) => String(of.left),
    right: true,
    warns: ({ of }) => of.left > 0,
  },
]

function reportText(report: ImportReport, { out }: CommandContext): string {
  const { family, into, applied, lines, passwords, converted, hasRoot, nodesNotified } = report
  const listed = lines.filter(({ fate }) => fate !== 'carried').toSorted(compareLines)
  return [
    `From ${ORIGIN[family]} into ${into}.\n\n`,
    table(rowsOf(lines), COLUMNS, out),
    '\n',
    ...listed.map(lineText),
    converted !== undefined && `quota: units are converted: ${converted}\n`,
    passwords > 0 &&
      `passwords: ${passwords} passwords do not carry over; "sluice user password NAME" sets new ones\n`,
    !hasRoot &&
      'root: no user has role 100; --role NAME keeps that of a user, "sluice user create NAME --role 100" creates one\n',
    '\n',
    applied
      ? 'Imported. Start the gateway, and try a key. Then switch the clients over: their keys are the same.\n'
      : 'Nothing was written. Run it again with --apply to import.\n',
    !nodesNotified && 'Running nodes could not be notified: they see it within a minute.\n',
  ]
    .filter((part) => part !== false)
    .join('')
}

function lineText({ kind, id, name, fate, notes, wayOut }: ReportLine): string {
  const number = id === undefined ? '' : ` ${id}`
  const why = notes.length > 0 ? `: ${notes.map(oneLine).join('; ')}` : ''
  const instead = wayOut === undefined ? '' : `; ${wayOut}`
  return `${kind}${number} ${escapeForTerminal(name)} ${OUTCOMES[fate]}${why}${instead}\n`
}

// Escapes a note, because notes quote text of the imported database.
function oneLine(note: string): string {
  return plainText(note).replaceAll('\n', '?')
}

function asJson(report: ImportReport): unknown {
  const { family, into, applied, lines, passwords, converted, hasRoot, failed, nodesNotified } = report
  return {
    family,
    into,
    applied,
    summary: countLines(lines),
    passwords_left: passwords,
    has_root: hasRoot,
    units_converted: converted ?? null,
    failed,
    told_nodes: nodesNotified,
    lines: lines.map(({ id, wayOut, ...line }) => ({
      ...line,
      id: id ?? null,
      ...(wayOut !== undefined && { way_out: wayOut }),
    })),
  }
}
