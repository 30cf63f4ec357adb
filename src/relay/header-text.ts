/** The text for a header: names of models may have characters that no header can have. */
export function headerText(name: string): string {
  return name.replace(/[^\t -~]/gu, (character) => encodeURIComponent(character))
}
