import process from 'node:process'
import { Command, Option } from 'commander'
import { version } from './version.ts'

const CONFIG = new Option('--config <file>', 'the configuration; default ./gateway.yaml if it is there').env(
  'GATEWAY_CONFIG',
)

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

What it reads from the environment (PORT, HOST, DATA_DIR, GATEWAY_SECRET, LOG_LEVEL, …) is told in docs/configuration.md.`,
  )

program
  .command('start')
  .description('run the gateway until it is told to stop (SIGTERM, SIGINT)')
  .addOption(CONFIG)
  .addHelpText(
    'after',
    `
The first start on an empty database makes a root user and prints its access token and an API key, once.
Example:
  OPENAI_API_KEY=… sluice start   # without a configuration, each vendor key in the environment makes a channel`,
  )
  .action(async (options: { config?: string }) => {
    const { start } = await import('./start.ts')
    process.exitCode = await start(options)
  })

program
  .command('demo')
  .description('run the gateway with a simulated upstream of each protocol: no vendor key is needed')
  .action(async () => {
    const { demo } = await import('./demo.ts')
    process.exitCode = await demo()
  })

program
  .command('check')
  .description('read the configuration and say every mistake, with file, line and what is expected')
  .addOption(CONFIG)
  .option('--json', 'print one JSON object')
  .addHelpText('after', '\nExits with 1 if there is any mistake.')
  .action(async (options: { config?: string; json?: boolean }) => {
    const { check } = await import('./check.ts')
    process.exitCode = await check(options)
  })

await program.parseAsync()
