import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

type Triple = readonly [number, number, number]

/** How people without one kind of cones see linear RGB (Viénot, Brettel and Mollon, 1999; Brettel for blue). */
const SIGHTS: Readonly<Record<string, readonly Triple[]>> = {
  'normal sight': [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.112_38, 0.887_62, 0],
    [0.112_38, 0.887_62, 0],
    [0.004_01, -0.004_01, 1],
  ],
  deuteranopia: [
    [0.292_75, 0.707_25, 0],
    [0.292_75, 0.707_25, 0],
    [-0.022_34, 0.022_34, 1],
  ],
  tritanopia: [
    [1.017_74, 0.118_88, -0.136_62],
    [-0.013_23, 0.869_97, 0.143_26],
    [-0.013_17, 0.842_95, 0.170_22],
  ],
}

const LIGHT = ['#2457c5', '#6f205f', '#2398e7', '#4f4f17', '#d16177', '#8f8f00']

const css = readFileSync(join(import.meta.dirname, '../../console/app/theme.css'), 'utf8')

function coloursOf(theme: 'light' | 'dark'): Readonly<Record<string, string>> {
  const start = css.indexOf(`:root[data-theme="${theme}"] {`)
  const block = css.slice(start, css.indexOf('}', start))
  return Object.fromEntries(
    [...block.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name = '', colour = '']) => [name, colour]),
  )
}

const seriesOf = (theme: 'light' | 'dark'): readonly string[] =>
  [1, 2, 3, 4, 5, 6].map((place) => coloursOf(theme)[`series-${place}`] ?? '')

function linearOf(hex: string): Triple {
  const channel = (at: number): number => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.040_45 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return [channel(1), channel(3), channel(5)]
}

function product(rows: readonly Triple[], [x, y, z]: Triple): Triple {
  const [a = 0, b = 0, c = 0] = rows.map(([p, q, r]) => p * x + q * y + r * z)
  return [a, b, c]
}

const seen = (rgb: Triple, sight: string): Triple => {
  const [r, g, b] = product(SIGHTS[sight] ?? [], rgb)
  const within = (value: number): number => Math.min(1, Math.max(0, value))
  return [within(r), within(g), within(b)]
}

/** Lightness, chroma and hue in degrees, in OKLCH. */
function oklchOf(hex: string): { readonly l: number; readonly c: number; readonly h: number } {
  const [l, m, s] = product(
    [
      [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
      [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
      [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
    ],
    linearOf(hex),
  )
  const [lightness, a, b] = product(
    [
      [0.210_454_255_3, 0.793_617_785, -0.004_072_046_8],
      [1.977_998_495_1, -2.428_592_205, 0.450_593_709_9],
      [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766],
    ],
    [Math.cbrt(l), Math.cbrt(m), Math.cbrt(s)],
  )
  return { l: lightness, c: Math.hypot(a, b), h: degrees(Math.atan2(b, a)) }
}

const degrees = (radians: number): number => ((radians * 180) / Math.PI + 360) % 360

const radians = (angle: number): number => (angle * Math.PI) / 180

function labOf(rgb: Triple): Triple {
  const [x, y, z] = product(
    [
      [0.412_456_4, 0.357_576_1, 0.180_437_5],
      [0.212_672_9, 0.715_152_2, 0.072_175],
      [0.019_333_9, 0.119_192, 0.950_304_1],
    ],
    rgb,
  )
  const f = (value: number): number =>
    value > 216 / 24_389 ? Math.cbrt(value) : (841 / 108) * value + 4 / 29
  const [fx, fy, fz] = [f(x / 0.950_47), f(y), f(z / 1.088_83)]
  return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)]
}

/** The difference of two colours, CIEDE2000 (Sharma, Wu and Dalal, 2005). */
function difference([l1, a1, b1]: Triple, [l2, a2, b2]: Triple): number {
  const meanC = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2
  const g = 0.5 * (1 - Math.sqrt(meanC ** 7 / (meanC ** 7 + 25 ** 7)))
  const [p1, p2] = [a1 * (1 + g), a2 * (1 + g)]
  const [c1, c2] = [Math.hypot(p1, b1), Math.hypot(p2, b2)]
  const hue = (a: number, b: number): number => (a === 0 && b === 0 ? 0 : degrees(Math.atan2(b, a)))
  const [h1, h2] = [hue(p1, b1), hue(p2, b2)]
  const apart = h2 - h1
  const turn = c1 * c2 === 0 ? 0 : apart > 180 ? apart - 360 : apart < -180 ? apart + 360 : apart
  const dH = 2 * Math.sqrt(c1 * c2) * Math.sin(radians(turn / 2))
  const [meanL, cMean] = [(l1 + l2) / 2, (c1 + c2) / 2]
  const sum = h1 + h2
  const far = sum < 360 ? (sum + 360) / 2 : (sum - 360) / 2
  const meanH = c1 * c2 === 0 ? sum : Math.abs(apart) <= 180 ? sum / 2 : far
  const t =
    1 -
    0.17 * Math.cos(radians(meanH - 30)) +
    0.24 * Math.cos(radians(2 * meanH)) +
    0.32 * Math.cos(radians(3 * meanH + 6)) -
    0.2 * Math.cos(radians(4 * meanH - 63))
  const sL = 1 + (0.015 * (meanL - 50) ** 2) / Math.sqrt(20 + (meanL - 50) ** 2)
  const [sC, sH] = [1 + 0.045 * cMean, 1 + 0.015 * cMean * t]
  const twist = 60 * Math.exp(-(((meanH - 275) / 25) ** 2))
  const rT = -2 * Math.sqrt(cMean ** 7 / (cMean ** 7 + 25 ** 7)) * Math.sin(radians(twist))
  const [dL, dC] = [(l2 - l1) / sL, (c2 - c1) / sC]
  return Math.sqrt(dL ** 2 + dC ** 2 + (dH / sH) ** 2 + rT * dC * (dH / sH))
}

/** The smallest difference of two of these colours. */
function smallestDifference(colours: readonly string[], sight: string): number {
  const labs = colours.map((colour) => labOf(seen(linearOf(colour), sight)))
  const all = labs.flatMap((one, index) => labs.slice(index + 1).map((other) => difference(one, other)))
  return Math.min(...all)
}

describe('colours of series', () => {
  test('the computed ΔE2000 colour differences equal those of the published examples', () => {
    expect(difference([50, 2.6772, -79.7751], [50, 0, -82.7485])).toBeCloseTo(2.0425, 4)
    expect(difference([50, 2.5, 0], [73, 25, -18])).toBeCloseTo(27.1492, 4)
    expect(difference([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387])).toBeCloseTo(1.2644, 4)
    expect(difference([2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514])).toBeCloseTo(0.9082, 4)
    const red = oklchOf('#ff0000')
    expect([red.l, red.c, red.h].map((value) => Number(value.toFixed(3)))).toEqual([0.628, 0.258, 29.234])
  })

  test('colours of the dark theme have bounded chroma and lightness, and none resembles the colour of errors', () => {
    const bad = oklchOf(coloursOf('dark')['bad'] ?? '').h
    for (const colour of seriesOf('dark')) {
      const { l, c, h } = oklchOf(colour)
      expect(c, colour).toBeLessThanOrEqual(0.17)
      expect(l, colour).toBeGreaterThanOrEqual(0.5)
      expect(l, colour).toBeLessThanOrEqual(0.86)
      const apart = Math.abs(h - bad) % 360
      expect(Math.min(apart, 360 - apart), colour).toBeGreaterThanOrEqual(20)
    }
  })

  test.each(Object.keys(SIGHTS))(
    'any two colours of a chart differ by a ΔE2000 of at least 10 for %s',
    (sight) => {
      for (const theme of ['light', 'dark'] as const)
        expect(smallestDifference(seriesOf(theme), sight), theme).toBeGreaterThanOrEqual(10)
    },
  )

  test('the chart colours of the light theme are those of the list in this test', () => {
    expect(seriesOf('light')).toEqual(LIGHT)
  })
})
