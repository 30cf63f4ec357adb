/** Texts in English: channels in trouble. */
export const incidents = {
  title: 'Incident',
  sentence: (state: string, share: string, since: string) =>
    `${state}: ${share} of its calls failed, since ${since}.`,
  calls: (rescued: string, lost: string) => `${rescued} answered by other channels, ${lost} lost.`,
  cause: (words: string) => `Last failure: ${words}.`,
  hide: 'Hide',
  refusedFile: 'Configuration file refused',
  refusedConfiguration: (mistake: string, mistakes: number) =>
    `A changed configuration file was refused, and the former configuration stays: ${mistake}${mistakes > 1 ? ` (${mistakes} mistakes)` : ''}. The next start would fail.`,
}
