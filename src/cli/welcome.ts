import { PROTOCOLS } from '@sluice/wire/protocols'
import type { Config } from '../config/config.ts'
import { NO_CHANNEL } from '../config/warnings.ts'
import { formatDiagnostic } from '../config/diagnostics.ts'
import { USER } from '../domain/records/user.ts'
import { endpointByName, isForUnsupportedEndpoint } from '../domain/endpoints.ts'
import { parseWebUrl } from '../domain/metadata-address.ts'
import type { Settings } from '../domain/settings.ts'
import type { ProxyVariables } from '../upstreams/environment-proxies.ts'
import type { Gateway } from '../gateway/main.ts'
import { quotaDisplay } from '../management/gateway-status.ts'
import { plainText } from './plain-text.ts'
import { quotaUnitsText } from '../management/quota-text.ts'

/** Maximum number of warnings that a start prints. */
const MAX_WARNINGS = 10

/**
 * The text printed once the gateway listens, with the first warnings about the configuration. At the first
 * start it contains credentials that are not shown again.
 */
export function welcome(
  { url: origin, settings, firstCredentials, recovered }: Gateway,
  { warnings, environment: { proxies } }: Pick<Config, 'warnings' | 'environment'>,
): string {
  const { channels, options } = settings
  const url = origin + options.base_path
  const lines = [`Sluice listens on ${url} with ${plural(channels.length, 'channel')}.`]
  if (channels.length === 0) {
    const inConsole = options.console ? 'add one in the console, ' : ''
    lines.push(
      `No channel is enabled: ${inConsole}write one into gateway.yaml (docs/configuration.md), set a vendor key such as OPENAI_API_KEY, or enable one that \`sluice channel list\` shows.`,
    )
  } else {
    // Warnings are of the file and the environment; the channels can be those of the database.
    const others = warnings.filter(({ message }) => message !== NO_CHANNEL.message)
    for (const warning of others.slice(0, MAX_WARNINGS))
      lines.push(`warning: ${plainText(formatDiagnostic(warning))}`)
    const more = others.length - MAX_WARNINGS
    if (more > 0) lines.push(`${plural(more, 'more warning')}: \`sluice check\` lists all of them.`)
  }
  lines.push(...proxyLines(proxies))
  if (recovered.count > 0) {
    lines.push(
      `Settled ${plural(recovered.count, 'call')} that an earlier run left open: ${quotaUnitsText(recovered.quota, quotaDisplay(settings))}.`,
    )
  }
  if (firstCredentials) {
    const { userId, accessToken, key } = firstCredentials
    lines.push(
      '',
      'A root user was created. This is printed once; keep it:',
      `  user id       ${userId}`,
      `  access token  ${accessToken}`,
      `  API key       ${key}`,
      ...(options.console ? [`  console       ${url}/login (sign in with the access token)`] : []),
      ...firstCall(url, key, settings),
    )
  }
  return `${lines.join('\n')}\n`
}

/** What the environment's proxies are used for, without their passwords. */
function proxyLines(proxies: ProxyVariables): readonly string[] {
  return (['http', 'https'] as const).flatMap((scheme) => {
    const url = parseWebUrl(proxies[scheme] ?? '')
    const variable = `${scheme.toUpperCase()}_PROXY`
    return url
      ? [
          `${variable}: channels without a proxy call ${scheme} addresses through ${url.host}, but for private ones and those in NO_PROXY.`,
        ]
      : []
  })
}

/** The group of the root user that a first start creates. */
const FIRST_GROUP = USER.fields.group.default

/** A first call that is answered with these settings, or what is missing for one. */
function firstCall(url: string, key: string, { channels, models, options }: Settings): readonly string[] {
  if (channels.length === 0) return []
  const usable = channels.filter(({ groups }) => groups.includes(FIRST_GROUP))
  if (usable.length === 0)
    return [
      '',
      `No channel serves the group ${FIRST_GROUP}, in which root is: name it under groups of a channel.`,
    ]
  const conversational = usable.filter(({ protocol: protocols }) =>
    protocols.some((one) => PROTOCOLS[one].isConversation),
  )
  const isCallable = (name: string): boolean =>
    models.get(name).price !== undefined || options.unpriced_models === 'free'
  for (const { models: names } of conversational) {
    const model = newestModel(
      names.filter(
        (name) => isCallable(name) && endpointByName(name) === undefined && !isForUnsupportedEndpoint(name),
      ),
    )
    if (model !== undefined) return tryIt(url, key, model)
  }
  if (usable.some((channel) => channel.models.some(isCallable)))
    return ['', 'No model is for conversations: docs/api.md has a request of each other endpoint.']
  return ['', 'No model has a price, so that calls are refused: write models.NAME.price into gateway.yaml.']
}

function tryIt(url: string, key: string, model: string): readonly string[] {
  return [
    '',
    'Try it:',
    `  curl ${url}/v1/chat/completions -H "authorization: Bearer ${key}" -H "content-type: application/json" \\`,
    `    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
  ]
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const DATE = /-20\d\d-?\d\d-?\d\d/

/**
 * Finds a version of one or two digits in a model name. A size (`8b`, `8x7b`) or part of a date (`2508`) is
 * not a version.
 */
const VERSION = /(?<![\d.])(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.a-z])/i

/** Returns the model whose name has the highest version. If several do, the shortest name. */
export function newestModel(models: readonly string[]): string | undefined {
  return [...models].sort((a, b) => versionOf(b) - versionOf(a) || a.length - b.length)[0]
}

/** The version as a number: major × 100 + minor; 0 if there is none. */
function versionOf(model: string): number {
  const [, major = 0, minor = 0] = VERSION.exec(model.replace(DATE, '')) ?? []
  return Number(major) * 100 + Number(minor)
}
