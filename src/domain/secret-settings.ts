import { OPTIONS } from './options.ts'

/**
 * Paths of secret settings in gateway.yaml, without the indexes of lists; of a mapping, all values are secret. Users and
 * channels are not among them: their records say which fields are secret.
 */
const SECRET_SETTINGS: readonly string[] = [
  ...Object.entries(OPTIONS).flatMap(([name, { type }]) => (type === 'bearer' ? [`options.${name}`] : [])),
  'options.smtp.password',
  'login.oidc.client_secret',
  // The URL of an alert receiver often contains its password.
  'alerts.url',
  'alerts.secret',
  'guards.match.webhook.headers',
  'guards.match.bedrock.keys',
  'guards.match.lakera.key',
  'mcp.servers.headers',
  'mcp.servers.client_secret',
]

/** Whether the setting at a path is secret. */
export function isSecretSetting(path: string): boolean {
  return SECRET_SETTINGS.some((secret) => `${path}.`.startsWith(`${secret}.`))
}

/** Whether the setting at a path is secret, or contains one that is. */
export function holdsSecret(path: string): boolean {
  return isSecretSetting(path) || SECRET_SETTINGS.some((secret) => secret.startsWith(`${path}.`))
}
