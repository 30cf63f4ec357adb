import type { Command } from 'commander'
import type { SecretChangeReport } from '../store/secret-change/secret-change.ts'
import { JSON_OPTION } from './options.ts'
import { plainText } from './plain-text.ts'
import { Progress } from './progress.ts'
import type { CommandContext } from './command-context.ts'
import { printJson, runReportingErrors } from './with-accounts.ts'

/** Maximum number of unreadable rows that are named. */
const MAX_NAMED = 20

const HELP = `
Encrypts everything in the database with a new secret, for example because the present one has leaked. API keys, access tokens,
sessions and kept data stay valid; contents and files keep their own keys, and only these are encrypted anew.
The command may be stopped at any point: run it again with the same variables.

A SQLite database: stop the gateway, run the command, and start the gateway with the new secret.
  GATEWAY_SECRET_NEW=$(openssl rand -hex 32) sluice secret change
If GATEWAY_SECRET is not set, the file DATA_DIR/secret is replaced, as the last step. The old secret stays beside it as
secret.old-ID. If the command was stopped, run "sluice secret change" without GATEWAY_SECRET_NEW.
If GATEWAY_SECRET is set, neither secret is kept: write the new one down first.

A PostgreSQL database, while its nodes run:
  1. Set GATEWAY_SECRET_NEW on each node, beside GATEWAY_SECRET, and restart the nodes one after another.
  2. sluice secret change             encrypts with the new secret; both are accepted
  3. sluice secret change --finish    encrypts what was left; only the new one is accepted
  4. Set GATEWAY_SECRET to the new secret, and remove GATEWAY_SECRET_NEW, until the next restart of each node.
If no node runs, the second step does all of it.

Backups from before need the old secret: keep it as long as you keep them. docs/security.md lists what depends on the secret.`

interface ChangeOptions {
  readonly finish?: boolean
  readonly json?: boolean
}

/** Adds `sluice secret change`: `docs/security.md: Change the secret`. */
export function addSecretCommands(program: Command, shell: CommandContext): void {
  const secret = program.command('secret').description('the secret that the database is encrypted with')
  secret
    .command('change')
    .description('encrypt everything with a new secret, GATEWAY_SECRET_NEW')
    .option('--finish', 'end a change while nodes run: the old secret is no longer accepted')
    .addOption(JSON_OPTION)
    .addHelpText('after', HELP)
    .action((options: ChangeOptions) => change(shell, options))
}

async function change(shell: CommandContext, { finish = false, json = false }: ChangeOptions): Promise<void> {
  await runReportingErrors(shell, async () => {
    const { readEnvironment } = await import('../config/environment.ts')
    const { changeSecretOf } = await import('../gateway/control/change-secret.ts')
    const environment = readEnvironment(shell.env)
    const progress = new Progress(shell, 'values', json)
    const report = await changeSecretOf({
      environment,
      finish,
      onProgress: (done, total) => progress.show(done, total),
    }).finally(() => progress.end())
    if (json) printJson(shell, report)
    else shell.out.write(plainText(reportText(report, environment.secret === undefined)))
  })
}

function reportText(
  { finished, resealed, unreadable, nodes, old_secret_file: kept }: SecretChangeReport,
  isInFile: boolean,
): string {
  const lines = [`${resealed} values were encrypted with the new secret.`]
  if (unreadable.length > 0) {
    const more = unreadable.length > MAX_NAMED ? ', …' : ''
    lines.push(
      `${unreadable.length} values could not be decrypted before either, and were left as they are: ${unreadable.slice(0, MAX_NAMED).join(', ')}${more}`,
    )
  }
  if (finished) {
    lines.push(
      'The database has the new secret alone.',
      isInFile
        ? 'The file "secret" of the data folder holds it now.'
        : 'Set GATEWAY_SECRET to it, and remove GATEWAY_SECRET_NEW.',
    )
  } else {
    lines.push(
      `Both secrets are accepted while the nodes run (${nodes.join(', ')}).`,
      'End the change with "sluice secret change --finish".',
    )
  }
  const place = kept === undefined ? 'keep it' : `it is in ${kept} now. Keep it in another place`
  lines.push(`Backups from before need the old secret: ${place} as long as you keep them.`)
  return `${lines.join('\n')}\n`
}
