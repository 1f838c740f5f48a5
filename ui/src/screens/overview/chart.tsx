// Small charts drawn as SVG. Screen readers get the numbers as a table.

import type { ReactNode } from "react";

export interface Series {
  name: string;
  /** A CSS colour that is readable in both themes. */
  color: string;
}

export interface Point {
  label: string;
  /** One value for each series. */
  values: number[];
}

interface ChartProps {
  /** What the chart shows, for the table. */
  caption: string;
  series: Series[];
  points: Point[];
  /** Heading of the first column of the table. */
  unit: string;
}

const HEIGHT = 100;
const STEP = 10;
const GAP = 2;

const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
export const formatNumber = (value: number) => value.toLocaleString("en");

/** The smallest of 1, 2, 5, 10, 20, … that is not below the value. */
export function axisMaximum(value: number): number {
  if (value <= 1) return 1;
  const magnitude = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((factor) => factor * magnitude >= value) ?? 10) * magnitude;
}

const describe = ({ label, values }: Point, series: Series[]) =>
  [label, ...series.map(({ name }, at) => `${name}: ${formatNumber(values[at] ?? 0)}`)].join("\n");

/** Bars side by side, each with its parts on top of one another. */
export function StackedBars(props: ChartProps) {
  const { points, series } = props;
  const maximum = axisMaximum(Math.max(0, ...points.map(({ values }) => total(values))));
  return (
    <ChartFrame {...props} maximum={maximum} width={points.length * STEP}>
      {points.map((point, column) => {
        let top = HEIGHT;
        return (
          <g key={point.label}>
            <rect className="chart-hover" x={column * STEP} y={0} width={STEP} height={HEIGHT}>
              <title>{describe(point, series)}</title>
            </rect>
            {point.values.map((value, at) => {
              const height = (value / maximum) * HEIGHT;
              top -= height;
              return (
                <rect
                  key={series[at]?.name}
                  className="chart-part"
                  x={column * STEP + GAP / 2}
                  y={top}
                  width={STEP - GAP}
                  height={height}
                  fill={series[at]?.color}
                />
              );
            })}
          </g>
        );
      })}
    </ChartFrame>
  );
}

/** Areas on top of one another over time. */
export function StackedAreas(props: ChartProps) {
  const { points, series } = props;
  const maximum = axisMaximum(Math.max(0, ...points.map(({ values }) => total(values))));
  const width = Math.max(1, points.length - 1) * STEP;
  const height = (value: number) => HEIGHT - (value / maximum) * HEIGHT;
  const upTo = (point: Point, count: number) => total(point.values.slice(0, count));
  const x = (column: number) => (points.length === 1 ? width / 2 : column * STEP);
  return (
    <ChartFrame {...props} maximum={maximum} width={width}>
      {series.map(({ name, color }, at) => {
        const upper = points.map((point, n) => `${x(n)},${height(upTo(point, at + 1))}`);
        const lower = points.map((point, n) => `${x(n)},${height(upTo(point, at))}`).reverse();
        return (
          <polygon
            key={name}
            className="chart-part"
            points={[...upper, ...lower].join(" ")}
            fill={color}
          />
        );
      })}
      {points.map((point, column) => (
        <rect
          key={point.label}
          className="chart-hover"
          x={x(column) - STEP / 2}
          y={0}
          width={STEP}
          height={HEIGHT}
        >
          <title>{describe(point, series)}</title>
        </rect>
      ))}
    </ChartFrame>
  );
}

interface ChartFrameProps extends ChartProps {
  maximum: number;
  width: number;
  children: ReactNode;
}

function ChartFrame({ maximum, width, children, ...props }: ChartFrameProps) {
  const { points } = props;
  const middle = points[Math.floor((points.length - 1) / 2)];
  return (
    <figure className="chart">
      <div className="chart-plot" aria-hidden="true">
        <div className="chart-scale">
          <span>{formatNumber(maximum)}</span>
          <span>{formatNumber(maximum / 2)}</span>
          <span>0</span>
        </div>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {[0, HEIGHT / 2, HEIGHT].map((y) => (
            <line key={y} className="chart-line" x1={0} x2={width} y1={y} y2={y} />
          ))}
          {children}
        </svg>
        <div className="chart-times">
          <span>{points[0]?.label}</span>
          {points.length > 4 && <span>{middle?.label}</span>}
          {points.length > 1 && <span>{points.at(-1)?.label}</span>}
        </div>
      </div>
      <Legend series={props.series} />
      <NumbersTable {...props} />
    </figure>
  );
}

export function Legend({ series }: { series: Series[] }) {
  return (
    <ul className="chart-legend" aria-hidden="true">
      {series.map(({ name, color }) => (
        <li key={name}>
          <span className="chart-swatch" style={{ background: color }} />
          {name}
        </li>
      ))}
    </ul>
  );
}

/** The numbers of a chart, for screen readers. */
export function NumbersTable({ caption, series, points, unit }: ChartProps) {
  return (
    <div className="visually-hidden">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">{unit}</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.map(({ label, values }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {series.map(({ name }, at) => (
                <td key={name}>{formatNumber(values[at] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ShareRow extends Point {
  /** Shown in place of the label. */
  heading?: ReactNode;
  /** Shown at the end of the bar. */
  summary: ReactNode;
}

interface ShareBarsProps extends Omit<ChartProps, "points"> {
  rows: ShareRow[];
  /** Total of a full bar; that of each row if absent. */
  maximum?: number;
}

/** One horizontal bar a row, with its parts side by side. */
export function ShareBars({ rows, maximum, ...props }: ShareBarsProps) {
  return (
    <figure className="chart">
      <ul className="share-bars" aria-hidden="true">
        {rows.map((row) => {
          const full = Math.max(maximum ?? total(row.values), 1);
          return (
            <li key={row.label} title={describe(row, props.series)}>
              <div className="share-heading">
                <span className="truncate bidi">{row.heading ?? row.label}</span>
                <span className="soft nowrap">{row.summary}</span>
              </div>
              <div className="share-bar">
                {row.values.map((value, at) => (
                  <span
                    key={props.series[at]?.name}
                    style={{
                      width: `${(value / full) * 100}%`,
                      background: props.series[at]?.color,
                    }}
                  />
                ))}
              </div>
            </li>
          );
        })}
      </ul>
      {props.series.length > 1 && <Legend series={props.series} />}
      <NumbersTable {...props} points={rows} />
    </figure>
  );
}
