import type { MatchLogic } from '@pydantic/genai-prices'

/** Whether a rule of the price data matches a model name. Only regular expressions are case-sensitive. */
export function matches(rule: MatchLogic, name: string): boolean {
  const lower = name.toLowerCase()
  if ('or' in rule) return rule.or.some((part) => matches(part, name))
  if ('and' in rule) return rule.and.every((part) => matches(part, name))
  if ('equals' in rule) return lower === rule.equals.toLowerCase()
  if ('starts_with' in rule) return lower.startsWith(rule.starts_with.toLowerCase())
  if ('ends_with' in rule) return lower.endsWith(rule.ends_with.toLowerCase())
  if ('contains' in rule) return lower.includes(rule.contains.toLowerCase())
  return new RegExp(rule.regex).test(name)
}

/** The names that a rule lists literally. */
export function literalNames(rule: MatchLogic): string[] {
  if ('or' in rule) return rule.or.flatMap(literalNames)
  return 'equals' in rule ? [rule.equals] : []
}

/** `-20250929` as `-2025-09-29`: some vendors and the price data write dates differently. */
export function withHyphenatedDate(name: string): string {
  return name.replaceAll(/-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)/g, '-$1-$2-$3')
}
