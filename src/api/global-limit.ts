/** Whether the global limit holds for a path, or for where it would be: accounts and billing. `docs/api.md: Limits`. */
export function isGloballyLimited(path: string): boolean {
  return /^\/(?:api|(?:v1\/)?dashboard)\//.test(path)
}
