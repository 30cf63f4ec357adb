import { Command } from 'commander'
import { addBackupCommand } from './backup-command.ts'
import { addImportCommand } from './import-command.ts'
import { addMigrateCommand } from './migrate-command.ts'
import { addServiceCommands } from './service-commands.ts'
import { addTokenCommands } from './token-commands.ts'
import { addUserCommands } from './user-commands.ts'
import { version } from './version.ts'

const program = new Command('sluice')
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

addServiceCommands(program)
addUserCommands(program)
addTokenCommands(program)
addBackupCommand(program)
addMigrateCommand(program)
addImportCommand(program)

await program.parseAsync()
