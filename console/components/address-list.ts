/**
 * The first line of a list that is neither an IP address nor a range of addresses; undefined if all lines are
 * valid.
 */
export function findInvalidAddress(text: string): string | undefined {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .find((line) => line !== '' && !isRange(line))
}

function isRange(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const bits = isFour(address) ? 32 : isSix(address) ? 128 : undefined
  if (bits === undefined || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
}

function isFour(text: string): boolean {
  return /^(?:\d{1,3}\.){3}\d{1,3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255)
}

function isSix(text: string): boolean {
  return /^[\da-f:.]+$/i.test(text) && text.includes(':') && URL.canParse(`http://[${text}]/`)
}
