// Makes stack traces of the built program name files and lines of src, by the source maps beside its files.
// Node's own support (`--enable-source-maps`) reads every map when its file is loaded, which takes 50 ms of a
// start and 4 MB; this reads a map only when a stack trace needs it.
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

const maps = new Map()

function mapOf(url) {
  if (!maps.has(url)) {
    let map
    try {
      map = new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), 'utf8')))
    } catch {
      // A file that belongs to Node, or has no map.
    }
    maps.set(url, map)
  }
  return maps.get(url)
}

// Formats a frame like V8, with the position in the source instead of that in the built file.
function frame(site) {
  const [url, line, column] = [site.getFileName(), site.getLineNumber(), site.getColumnNumber()]
  const origin = url?.startsWith('file:') ? mapOf(url)?.findOrigin(line, column) : undefined
  if (origin?.fileName === undefined) return String(site)
  const position = `${new URL(origin.fileName, url).href}:${origin.lineNumber}:${origin.columnNumber}`
  return String(site).replace(`${url}:${line}:${column}`, position)
}

Error.prepareStackTrace = (error, sites) => {
  let title
  try {
    title = Error.prototype.toString.call(error)
  } catch {
    title = '<error>'
  }
  return [title, ...sites.map((site) => `    at ${frame(site)}`)].join('\n')
}
