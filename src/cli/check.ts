import { styleText } from 'node:util'
import type { Config } from '../config/config.ts'
import type { CommandContext } from './command-context.ts'

/**
 * `sluice check`: prints the errors in the configuration, one a line, on standard error; with `json`, one
 * object on standard output. Resolves to the exit code: 1 if there is an error, 0 if there are only warnings.
 */
export async function check(
  options: { config?: string; json?: boolean },
  { env, out, err }: Pick<CommandContext, 'env' | 'out' | 'err'>,
): Promise<number> {
  const { readConfig } = await import('../config/config.ts')
  const { readEnvironment } = await import('../config/environment.ts')
  const { ConfigError, formatDiagnostic } = await import('../config/diagnostics.ts')
  const printLine = (colour: 'red' | 'yellow', line: string): void => {
    err.write(`${styleText(colour, line, { stream: err })}\n`)
  }

  try {
    const config = readConfig(readEnvironment(env, { config: options.config }))
    if (options.json) {
      out.write(
        `${JSON.stringify({ ok: true, ...countsOf(config), mistakes: [], warnings: config.warnings })}\n`,
      )
    } else {
      for (const warning of config.warnings) printLine('yellow', `warning: ${formatDiagnostic(warning)}`)
      out.write(`${summary(config)}\n`)
    }
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { diagnostics } = error
    if (options.json) out.write(`${JSON.stringify({ ok: false, mistakes: diagnostics, warnings: [] })}\n`)
    else for (const diagnostic of diagnostics) printLine('red', formatDiagnostic(diagnostic))
    return 1
  }
}

function countsOf({ settings, users }: Config): Record<'channels' | 'models' | 'groups' | 'users', number> {
  return {
    channels: settings.channels.length,
    models: new Set(settings.channels.flatMap((channel) => channel.models)).size,
    groups: settings.groups.size,
    users: users.length,
  }
}

/** Summary of a valid configuration: `The configuration is valid: 2 channels, 3 models, 2 groups, 1 user.` */
function summary(config: Config): string {
  const parts = Object.entries(countsOf(config)).map(
    ([things, count]) => `${count} ${count === 1 ? things.slice(0, -1) : things}`,
  )
  return `The configuration is valid: ${parts.join(', ')}.`
}
