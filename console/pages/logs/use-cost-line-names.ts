import { isPricedPerMillion } from '../../../src/domain/charge.ts'
import { TOKEN_KINDS } from '../../../src/domain/token-kinds.ts'
import { useTexts } from '../../locales/use-texts.tsx'

export function useCostLineNames() {
  const { call } = useTexts()
  const names: Readonly<Record<string, string>> = call.lines
  const nameOf = (line: string): string => {
    const kind = TOKEN_KINDS.find((one) => one.line === line)
    const whole = kind?.medium && TOKEN_KINDS.find(({ name }) => name === kind.partOf)
    return whole ? call.ofModality(nameOf(whole.line), call.modalities[kind.medium]) : (names[line] ?? line)
  }
  return { nameOf, isPerMillion: isPricedPerMillion }
}
