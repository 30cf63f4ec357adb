import type { Command } from 'commander'
import { CONFIG_OPTION } from './options.ts'
import type { Shell } from './shell.ts'

const START_HELP = `
The first start on an empty database creates a root user and prints its access token and an API key, once.
Example:
  OPENAI_API_KEY=… sluice start   # without a configuration, each vendor key in the environment creates a channel`

/** `sluice start`, `demo` and `check`. */
export function addServiceCommands(program: Command, shell: Shell): void {
  program
    .command('start')
    .description('run the gateway until a signal stops it (SIGTERM, SIGINT)')
    .addOption(CONFIG_OPTION)
    .option(
      '--workers <number>',
      'processes that take calls, or "auto": one for each core (env: WORKERS; default 1)',
    )
    .addHelpText('after', START_HELP)
    .action(async (options: { config?: string; workers?: string }) => {
      const { start } = await import('./start.ts')
      shell.exitCode = await start(options)
    })

  // For `start --workers` only; of no use by hand.
  program.command('worker', { hidden: true }).action(async () => {
    const { worker } = await import('./worker.ts')
    await worker()
  })

  program
    .command('demo')
    .description('run the gateway with a simulated upstream of each protocol: no vendor key is needed')
    .action(async () => {
      const { demo } = await import('./demo.ts')
      shell.exitCode = await demo()
    })

  program
    .command('check')
    .description('read the configuration and print all errors, with file, line and the expected value')
    .addOption(CONFIG_OPTION)
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExits with 1 if there is any error.')
    .action(async (options: { config?: string; json?: boolean }) => {
      const { check } = await import('./check.ts')
      shell.exitCode = await check(options, shell)
    })
}
