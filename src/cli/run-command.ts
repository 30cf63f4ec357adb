import { Command, CommanderError } from 'commander'
import { addBackupCommand } from './backup-command.ts'
import { addBatchCommands } from './batch-commands.ts'
import { addChannelCommands } from './channel-commands.ts'
import { addGroupCommands } from './group-commands.ts'
import { addImportCommand } from './import-command.ts'
import { addLogsCommand } from './logs-command.ts'
import { addMcpCommands } from './mcp-commands.ts'
import { addMigrateCommand } from './migrate-command.ts'
import { addServiceCommands, addSchemaCommand } from './service-commands.ts'
import { addPricesCommand } from './prices-command.ts'
import type { CommandContext } from './command-context.ts'
import { addSecretCommands } from './secret-command.ts'
import { addTokenCommands } from './token-commands.ts'
import { addUsageCommand } from './usage-command.ts'
import { addUserCommands } from './user-commands.ts'
import { versionWithCommit } from '../domain/version.ts'

/**
 * Runs `sluice` with these arguments. When it resolves, the exit code is in `shell.exitCode`. Several
 * commands can run in one process, because commands leave its exit code and signals alone; only `start` and
 * `demo` handle signals and may end the process.
 */
export async function runCommand(args: readonly string[], shell: CommandContext): Promise<void> {
  const program = new Command('sluice')
    .configureOutput({
      writeOut: (text) => shell.out.write(text),
      writeErr: (text) => shell.err.write(text),
    })
    .exitOverride()
    .description('A gateway in front of language models: keys, quotas, channels, exact accounts.')
    .version(versionWithCommit())
    .showHelpAfterError('(run it with --help for its arguments)')
    .addHelpText(
      'after',
      `
First steps:
  sluice demo                     the gateway with simulated upstreams, to look around
  sluice check --config FILE      prints all errors in a configuration
  sluice start --config FILE      the gateway
  sluice user create NAME --quota 10usd
                                  an account, and then
  sluice token create --user NAME --name KEY --unlimited
                                  an API key for it
  sluice import SOURCE            imports users, keys and channels of a one-api, new-api or LiteLLM

user, token, channel, group, mcp, batch, usage, logs, prices and backup work on DATA_DIR, whether or not a gateway runs on it; migrate and import need it stopped.
docs/configuration.md lists all environment variables (PORT, HOST, GATEWAY_SECRET, LOG_LEVEL, …), and
docs/operations.md describes how to run the gateway.`,
    )

  addServiceCommands(program, shell)
  addUserCommands(program, shell)
  addTokenCommands(program, shell)
  addChannelCommands(program, shell)
  addGroupCommands(program, shell)
  addMcpCommands(program, shell)
  addBatchCommands(program, shell)
  addUsageCommand(program, shell)
  addLogsCommand(program, shell)
  addPricesCommand(program, shell)
  addBackupCommand(program, shell)
  addSecretCommands(program, shell)
  addSchemaCommand(program, shell)
  addMigrateCommand(program, shell)
  addImportCommand(program, shell)

  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    // Commander has already printed the error or the help.
    if (!(error instanceof CommanderError)) throw error
    shell.exitCode = error.exitCode
  }
}
