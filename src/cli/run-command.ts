import { Command, CommanderError } from 'commander'
import { addBackupCommand } from './backup-command.ts'
import { addImportCommand } from './import-command.ts'
import { addMigrateCommand } from './migrate-command.ts'
import { addServiceCommands } from './service-commands.ts'
import type { Shell } from './shell.ts'
import { addTokenCommands } from './token-commands.ts'
import { addUserCommands } from './user-commands.ts'
import { version } from './version.ts'

/**
 * Runs `sluice` with these arguments, and resolves when the command has ended, with what it came to in
 * `shell.exitCode`. It touches nothing of the process, so that several can run in one; `start` and `demo`
 * alone take the process as theirs.
 */
export async function runCommand(args: readonly string[], shell: Shell): Promise<void> {
  const program = new Command('sluice')
    .configureOutput({
      writeOut: (text) => shell.out.write(text),
      writeErr: (text) => shell.err.write(text),
    })
    .exitOverride()
    .description('A gateway in front of language models: keys, quotas, channels, exact accounts.')
    .version(version())
    .showHelpAfterError('(run it with --help to see what it takes)')
    .addHelpText(
      'after',
      `
Begin here:
  sluice demo                     the gateway with simulated upstreams, to look around
  sluice check --config FILE      says every mistake in a configuration
  sluice start --config FILE      the gateway
  sluice user create NAME         an account, and then
  sluice token create --user NAME --name KEY --unlimited
                                  an API key for it
  sluice import SOURCE            what a one-api or new-api holds that carries over

user, token and backup work on DATA_DIR, whether a gateway runs on it or not; migrate and import while none does. What else is read from the environment
(PORT, HOST, GATEWAY_SECRET, LOG_LEVEL, …) is told in docs/configuration.md, and how to run it in docs/operations.md.`,
    )

  addServiceCommands(program, shell)
  addUserCommands(program, shell)
  addTokenCommands(program, shell)
  addBackupCommand(program, shell)
  addMigrateCommand(program, shell)
  addImportCommand(program, shell)

  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    // Commander has said what was wrong, or given its help.
    if (!(error instanceof CommanderError)) throw error
    shell.exitCode = error.exitCode
  }
}
