import { PROTOCOLS } from '@sluice/wire/protocols'
import type { Gateway } from '../gateway/main.ts'

/**
 * The text printed once the gateway listens. At the first start it contains credentials that are not shown
 * again.
 */
export function welcome({ url, settings, firstCredentials, recovered }: Gateway): string {
  const { channels } = settings
  const lines = [`Sluice listens on ${url} with ${plural(channels.length, 'channel')}.`]
  if (channels.length === 0) {
    lines.push(
      'There is no channel yet: write one into gateway.yaml (docs/configuration.md), or set a vendor key such as OPENAI_API_KEY.',
    )
  }
  if (recovered.count > 0) {
    lines.push(
      `Settled ${plural(recovered.count, 'call')} that an earlier run left open: ${recovered.quota} quota units.`,
    )
  }
  if (firstCredentials) {
    const { userId, accessToken, key } = firstCredentials
    const conversational = channels.find(({ protocol: protocols }) =>
      protocols.some((one) => PROTOCOLS[one].isConversation),
    )
    const model = newestModel(conversational?.models ?? []) ?? 'MODEL'
    lines.push(
      '',
      'A root user was created. This is printed once; keep it:',
      `  user id       ${userId}`,
      `  access token  ${accessToken}`,
      `  API key       ${key}`,
      ...(settings.options.console ? [`  console       ${url}/login (sign in with the access token)`] : []),
      '',
      'Try it:',
      `  curl ${url}/v1/chat/completions -H "authorization: Bearer ${key}" -H "content-type: application/json" \\`,
      `    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
    )
  }
  return `${lines.join('\n')}\n`
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
