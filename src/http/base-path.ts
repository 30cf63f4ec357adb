/** Paths that are served without the base path as well, because probes on the machine do not know it. */
const MONITORING = /^\/(?:healthz|readyz|metrics)(?:\?|$)/

/**
 * The path and query of a request within the gateway: `/v1/models` for `/ai/v1/models` if the base path is `/ai`.
 * Undefined if the gateway serves nothing there. `docs/configuration.md: Options`.
 */
export function withoutBasePath(url: string, basePath: string): string | undefined {
  if (basePath === '' || MONITORING.test(url)) return url
  if (!url.startsWith(basePath)) return undefined
  const rest = url.slice(basePath.length)
  if (rest.startsWith('/')) return rest
  return rest === '' || rest.startsWith('?') ? `/${rest}` : undefined
}
